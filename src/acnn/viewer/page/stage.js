// 3D stage of a page: one canvas behind its cells, one camera for all shapes, pointer and key handlers.

const canvas = by("canvas");
const camera = { half: [1, 1, 1] };
let view = null,
  stage = null,
  waiting = false;

// page: {
//   shapes: of `unpackShape`, with `up` and, where it is one, `cloud`; each gets a `mesh`
//   cells(): of `cellOf`, the first is a large one; those that can be picked have an `owner`
//   colors(shape): (n * 3) bytes
//   pick(owner, vertex): a vertex was clicked; -1 is none
//   hover(owner, vertex): the pointer is at a vertex; -1 is none; may be left out
//   drawn(cells): after each drawing; may be left out
//   keys: {key: action} in addition to those of the stage
// }
function startStage(page) {
  stage = page;
  try {
    view = new MeshView(canvas);
  } catch (error) {
    canvas.hidden = true;
    by("fallback").hidden = false;
    return;
  }
  for (const shape of stage.shapes)
    shape.mesh = view.add(shape.positions, shape.faces, Boolean(shape.cloud), { coordinates: shape.coordinates });
  canvas.addEventListener("webglcontextlost", event => event.preventDefault());
  canvas.addEventListener("webglcontextrestored", () => {
    view.start();
    repaint();
  });
  listen();
  new ResizeObserver(redraw).observe(by("stage"));
  by("reset").addEventListener("click", resetCamera);
  resetCamera();
}

// A cell that draws a shape over an element of the page; bottom: free pixels at its lower edge
function cellOf(node, shape, more = {}, bottom = 0) {
  const box = canvas.getBoundingClientRect(),
    r = node.getBoundingClientRect();
  const rect = { left: r.left - box.left, top: r.top - box.top, width: r.width, height: r.height - bottom };
  return { rect, mesh: shape.mesh, up: shape.up, ...more };
}

function marker(shape, vertex, color, size = 1) {
  return { position: Array.from(shape.positions.subarray(3 * vertex, 3 * vertex + 3)), color, size };
}

function redraw() {
  if (!view || waiting) return;
  waiting = true;
  requestAnimationFrame(() => {
    waiting = false;
    const cells = stage.cells();
    view.draw(cells, camera);
    if (stage.drawn) stage.drawn(cells);
    document.documentElement.dataset.drawn = String(1 + Number(document.documentElement.dataset.drawn || 0));
  });
}

function repaint() {
  if (!view) return;
  for (const shape of stage.shapes) view.paint(shape.mesh, stage.colors(shape));
  redraw();
}

function resetCamera() {
  const halves = stage.shapes.map(shape => upright(shape.half, shape.up));
  Object.assign(camera, { yaw: 0.35, pitch: 0.12, zoom: 1, pan: [0, 0] });
  camera.half = [0, 1, 2].map(d => Math.max(...halves.map(half => half[d])));
  redraw();
}

function turnBy(dx, dy) {
  camera.yaw += dx;
  camera.pitch = Math.max(-1.5, Math.min(1.5, camera.pitch + dy));
  redraw();
}

function zoomBy(factor) {
  camera.zoom = Math.max(0.4, Math.min(30, camera.zoom * factor));
  redraw();
}

function moveBy(dx, dy) {
  const cell = stage.cells()[0],
    pixel = frame(camera, cell.rect.width / cell.rect.height).pixel(cell.rect.height);
  camera.pan = [camera.pan[0] + dx * pixel, camera.pan[1] - dy * pixel];
  redraw();
}

function listen() {
  const fingers = new Map();
  let travelled = 0,
    gap = 0;
  const middle = () =>
    [...fingers.values()].reduce(([x, y], p) => [x + p[0] / fingers.size, y + p[1] / fingers.size], [0, 0]);
  const spread = () => {
    const [a, b] = [...fingers.values()];
    return b ? Math.hypot(a[0] - b[0], a[1] - b[1]) : 0;
  };
  canvas.addEventListener("pointerdown", event => {
    canvas.setPointerCapture(event.pointerId);
    canvas.focus({ preventScroll: true });
    if (!fingers.size) travelled = 0;
    fingers.set(event.pointerId, [event.clientX, event.clientY]);
    gap = spread();
    canvas.classList.add("turning");
  });
  canvas.addEventListener("pointermove", event => {
    if (!fingers.has(event.pointerId)) {
      if (stage.hover && !fingers.size && event.pointerType === "mouse") hoverAt(event.clientX, event.clientY);
      return;
    }
    const before = middle();
    fingers.set(event.pointerId, [event.clientX, event.clientY]);
    const now = middle(),
      dx = now[0] - before[0],
      dy = now[1] - before[1];
    travelled += Math.abs(dx) + Math.abs(dy) + (fingers.size > 1 ? 10 : 0);
    if (fingers.size > 1) {
      moveBy(dx, dy);
      if (gap > 0 && spread() > 0) zoomBy(spread() / gap);
      gap = spread();
    } else if (event.shiftKey || event.buttons & 6) moveBy(dx, dy);
    else turnBy(dx * 0.009, dy * 0.009);
  });
  const release = event => {
    if (event.type === "pointerup" && fingers.size === 1 && travelled < 5 && event.button === 0)
      vertexAt(event.clientX, event.clientY, stage.pick);
    fingers.delete(event.pointerId);
    gap = spread();
    if (!fingers.size) canvas.classList.remove("turning");
  };
  canvas.addEventListener("pointerup", release);
  canvas.addEventListener("pointercancel", release);
  canvas.addEventListener("pointerleave", () => stage.hover && stage.hover(null, -1));
  canvas.addEventListener("contextmenu", event => event.preventDefault());
  canvas.addEventListener(
    "wheel",
    event => {
      if (document.activeElement !== canvas) return; // the page scrolls until the view was clicked
      event.preventDefault();
      zoomBy(Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.0015)));
    },
    { passive: false },
  );
  canvas.addEventListener("keydown", event => {
    const act = {
      ArrowLeft: () => turnBy(-0.15, 0),
      ArrowRight: () => turnBy(0.15, 0),
      ArrowUp: () => turnBy(0, -0.15),
      ArrowDown: () => turnBy(0, 0.15),
      "+": () => zoomBy(1.2),
      "=": () => zoomBy(1.2),
      "-": () => zoomBy(1 / 1.2),
      0: resetCamera,
      Escape: () => stage.pick(null, -1),
      ...stage.keys,
    }[event.key];
    if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    act();
  });
}

// Call action(owner, vertex) for the cell at a place of the window.
function vertexAt(clientX, clientY, action) {
  const box = canvas.getBoundingClientRect(),
    x = clientX - box.left,
    y = clientY - box.top;
  for (const cell of stage.cells().filter(c => c.owner)) {
    const { left, top, width, height } = cell.rect;
    if (x < left || x > left + width || y < top || y > top + height) continue;
    action(cell.owner, view.pick(cell, camera, x - left, y - top));
  }
}

let hovering = null;
function hoverAt(x, y) {
  if (!hovering)
    requestAnimationFrame(() => {
      const [lastX, lastY] = hovering;
      hovering = null;
      vertexAt(lastX, lastY, stage.hover);
    });
  hovering = [x, y];
}
