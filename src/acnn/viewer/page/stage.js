// The 3D stage: one canvas behind the cells of the page, one camera for all shapes, and the point that was clicked.

let view = null,
  waiting = false;
const canvas = by("canvas");
const buttons = [];

function cells() {
  const box = canvas.getBoundingClientRect(),
    shape = shapes[state.shape];
  const inside = (node, bottom = 0) => {
    const r = node.getBoundingClientRect();
    return { left: r.left - box.left, top: r.top - box.top, width: r.width, height: r.height - bottom };
  };
  const at = (owner, v) => Array.from(owner.places.subarray(3 * v, 3 * v + 3));
  const onReference = [],
    onShape = [];
  const map = shape[state.map];
  if (state.vertex >= 0) {
    onShape.push({ place: at(shape, state.vertex), color: CHOSEN });
    const truth = shape.truth[state.vertex],
      match = map[state.vertex];
    if (known(truth, reference.count) && truth !== match)
      onReference.push({ place: at(reference, truth), color: TRUE });
    onReference.push({ place: at(reference, match), color: CHOSEN });
  } else if (state.referenceVertex >= 0) {
    onReference.push({ place: at(reference, state.referenceVertex), color: CHOSEN });
    for (const v of arriving(shape, state.referenceVertex).slice(0, 40))
      onShape.push({ place: at(shape, v), color: CHOSEN, size: 0.8 });
  }
  const large = [
    { rect: inside(by("cell-reference")), mesh: reference.mesh, markers: onReference, owner: "reference" },
    { rect: inside(by("cell-shape")), mesh: shape.mesh, markers: onShape, owner: "shape" },
  ];
  const strip = inside(by("thumbs"));
  const small = buttons
    .map((button, i) => ({ rect: inside(button, 26), mesh: shapes[i].mesh, zoom: 1.15 }))
    .filter(cell => cell.rect.left + cell.rect.width > strip.left && cell.rect.left < strip.left + strip.width);
  return { large, small };
}

function redraw() {
  if (!view || waiting) return;
  waiting = true;
  requestAnimationFrame(() => {
    waiting = false;
    const { large, small } = cells();
    view.draw([...large, ...small], camera);
    document.documentElement.dataset.drawn = String(1 + Number(document.documentElement.dataset.drawn || 0));
  });
}

function repaint() {
  if (!view) return;
  for (const shape of shapes) view.paint(shape.mesh, shapeColors(shape));
  view.paint(reference.mesh, referenceColors(shapes[state.shape]));
  redraw();
}

function resetCamera() {
  Object.assign(camera, { yaw: 0.35, pitch: 0.12, zoom: 1, pan: [0, 0], up: by("up").value });
  redraw();
}

function arriving(shape, r) {
  const map = shape[state.map],
    found = [];
  for (let v = 0; v < shape.count; v++) if (map[v] === r) found.push(v);
  return found;
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
  const cell = cells().large[0],
    pixel = frame(camera, cell.rect.width / cell.rect.height).pixel(cell.rect.height);
  camera.pan = [camera.pan[0] + dx * pixel, camera.pan[1] - dy * pixel];
  redraw();
}

function listenToPointers() {
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
    if (!fingers.has(event.pointerId)) return;
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
      pickAt(event.clientX, event.clientY);
    fingers.delete(event.pointerId);
    gap = spread();
    if (!fingers.size) canvas.classList.remove("turning");
  };
  canvas.addEventListener("pointerup", release);
  canvas.addEventListener("pointercancel", release);
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
      n: () => choose(state.shape + 1),
      p: () => choose(state.shape - 1),
      Escape: () => select(-1, -1),
    }[event.key];
    if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    act();
  });
}

function pickAt(clientX, clientY) {
  const box = canvas.getBoundingClientRect(),
    x = clientX - box.left,
    y = clientY - box.top;
  for (const cell of cells().large) {
    const { left, top, width, height } = cell.rect;
    if (x < left || x > left + width || y < top || y > top + height) continue;
    const found = view.pick(cell, camera, x - left, y - top);
    if (cell.owner === "shape") select(found, -1);
    else select(-1, found);
  }
}

function select(vertex, referenceVertex) {
  Object.assign(state, { vertex, referenceVertex });
  tell();
  redraw();
}

// What the chosen point says
function tell() {
  const shape = shapes[state.shape],
    out = by("picked");
  const dot = color =>
    element("span", { class: "dot", style: `background: rgb(${color.map(c => Math.round(255 * c)).join()})` });
  out.replaceChildren();
  if (state.vertex >= 0) {
    const v = state.vertex,
      match = shape[state.map][v],
      truth = shape.truth[v],
      error = shape[`${state.map}Error`][v];
    out.append(dot(CHOSEN), `Vertex ${v} of ${shape.name} → reference vertex ${match} (${state.map})`);
    if (known(truth, reference.count))
      out.append(
        truth === match ? ", which is right" : ". ",
        truth === match ? "" : dot(TRUE),
        truth === match ? "" : `True: ${truth}`,
      );
    if (!Number.isNaN(error)) out.append(`. Error ${error.toFixed(4)} ${data.length}`);
    out.append(`. Confidence of the network ${percent(shape.confidence[v], 0)}.`);
  } else if (state.referenceVertex >= 0) {
    const count = arriving(shape, state.referenceVertex).length;
    const gone = shape.missing && shape.missing[state.referenceVertex] ? " It lies where the part has nothing." : "";
    out.append(
      dot(CHOSEN),
      `Reference vertex ${state.referenceVertex}: ${count === 1 ? "1 vertex" : `${count} vertices`} of ${shape.name} matched to it (${state.map}).${gone}`,
    );
  }
}
