// Page of a match: A and the shape it is matched to, their colours, pins and downloads.

const state = { quantity: "match", pins: [], hover: null, last: null };
const [a, b] = [data.a, data.b].map(given => {
  const { name, file, cloud } = given;
  const numbers = given.numbers && unpack(given.numbers);
  return Object.assign(unpackShape(given), { name, file, cloud, numbers, up: data.up, given });
});
const matched = unpack(data.matched),
  confidence = values(data.confidence),
  distortion = values(data.distortion),
  targetColors = unpack(data.b.colors);
const onTarget = { confidence: transferred(confidence, matched, b), distortion: transferred(distortion, matched, b) };
const REACHED = !onTarget.confidence.some(Number.isNaN);
const SHOWN = 40,
  MOST_PINS = 20,
  SQUARES = 24,
  HOVERED_FACES = 400000;
const PIN_COLORS = [
  [0.9, 0.1, 0.29],
  [0.24, 0.41, 0.91],
  [0.13, 0.59, 0.25],
  [0.96, 0.51, 0.19],
  [0.57, 0.12, 0.71],
  [0.0, 0.5, 0.5],
  [0.6, 0.39, 0.14],
  [0.5, 0.0, 0.25],
];
const HEADINGS = {
  good: "Notes on this match",
  doubtful: "This match is doubtful",
  failed: "This match has failed",
};
const LIMITS = { confidence: 1, distortion: 1 };

// Coordinates of a checkerboard: those of B, on A at the matched points
b.coordinates = b.positions;
a.coordinates = imageCoordinates();

function imageCoordinates() {
  if (data.images) {
    const numbers = unpack(data.images),
      middle = [0, 1, 2].map(d => middleOf(unpack(data.b.vertices), d));
    return Float32Array.from(numbers, (x, i) => (x - middle[i % 3]) * data.b.step);
  }
  const found = new Float32Array(3 * a.count);
  for (let v = 0; v < a.count; v++) found.set(b.positions.subarray(3 * matched[v], 3 * matched[v] + 3), 3 * v);
  return found;
}

// Middle of the range of a coordinate
function middleOf(numbers, axis) {
  let low = Infinity,
    high = -Infinity;
  for (let i = axis; i < numbers.length; i += 3) {
    low = Math.min(low, numbers[i]);
    high = Math.max(high, numbers[i]);
  }
  return (low + high) / 2;
}

// Meshes with texture coordinates, whose faces share no corners; made when first shown
function showTexture() {
  for (const shape of [a, b]) {
    const given = shape.given.texture;
    if (shape.textured || !view) continue;
    const uv = Float32Array.from(unpack(given.uv), x => given.low + given.step * x),
      corners = unpack(given.faces),
      count = shape.faces.length;
    const [positions, normals, coordinates] = [0, 1, 2].map(() => new Float32Array(3 * count));
    for (let k = 0; k < count; k++) {
      const v = 3 * shape.faces[k];
      positions.set(shape.positions.subarray(v, v + 3), 3 * k);
      normals.set(shape.mesh.normals.subarray(v, v + 3), 3 * k);
      coordinates.set(uv.subarray(2 * corners[k], 2 * corners[k] + 2), 3 * k);
    }
    const order = Uint32Array.from({ length: count }, (_, k) => k),
      picture = new Image();
    picture.onload = () => {
      shape.textured = view.add(positions, order, false, { normals, coordinates, picture });
      redraw();
    };
    picture.src = given.image;
  }
}

function matchCells() {
  const onA = [],
    onB = [];
  for (const pin of state.pins) {
    onA.push(marker(a, pin.a, pin.color));
    onB.push(marker(b, pin.b, pin.color));
  }
  const last = state.hover || state.last;
  if (last && last.a >= 0) {
    onA.push(marker(a, last.a, CHOSEN, 0.8));
    onB.push(marker(b, matched[last.a], CHOSEN, 0.8));
  } else if (last && last.b >= 0) {
    onB.push(marker(b, last.b, CHOSEN, 0.8));
    for (const v of arriving(matched, last.b).slice(0, SHOWN)) onA.push(marker(a, v, CHOSEN, 0.6));
  }
  const pattern = { checkerboard: 1, texture: 2 }[state.quantity] || 0,
    square = (2 * Math.max(...b.half)) / SQUARES;
  return [
    [a, onA, "a"],
    [b, onB, "b"],
  ].map(([shape, markers, owner]) => {
    const textured = pattern === 2 && shape.textured;
    return cellOf(by(`cell-${owner}`), shape, {
      markers,
      owner,
      square,
      pattern: pattern === 2 && !textured ? 0 : pattern,
      mesh: textured || shape.mesh,
      pickMesh: shape.mesh,
    });
  });
}

function colors(shape) {
  const onA = shape === a;
  if (state.quantity === "plain" || state.quantity === "texture") return plainColors(shape.count);
  if (state.quantity in LIMITS) {
    const shown = onA ? { confidence, distortion } : onTarget;
    return valueColors(shown[state.quantity], data.stops[state.quantity], LIMITS[state.quantity]);
  }
  return onA ? matchColors(matched, targetColors) : targetColors;
}

// Vertices of a pin at a picked vertex; the most confident vertex of A where B was picked, null where there is none
function pairAt(owner, vertex) {
  if (vertex < 0) return null;
  if (owner === "a") return { a: vertex, b: matched[vertex] };
  const found = arriving(matched, vertex);
  if (!found.length) return null;
  return { a: found.reduce((x, y) => (confidence[y] > confidence[x] ? y : x)), b: vertex };
}

function pick(owner, vertex) {
  state.hover = null;
  state.last = vertex < 0 ? null : { a: owner === "a" ? vertex : -1, b: owner === "b" ? vertex : -1 };
  const pair = pairAt(owner, vertex);
  if (pair && state.pins.length < MOST_PINS && !state.pins.some(pin => pin.a === pair.a && pin.b === pair.b)) {
    const used = new Set(state.pins.map(pin => pin.number));
    let number = 1;
    while (used.has(number)) number++;
    state.pins.push({ ...pair, number, color: PIN_COLORS[(number - 1) % PIN_COLORS.length] });
    listPins();
  }
  describe();
  redraw();
}

function hover(owner, vertex) {
  const next = vertex < 0 ? null : { a: owner === "a" ? vertex : -1, b: owner === "b" ? vertex : -1 };
  if (JSON.stringify(next) === JSON.stringify(state.hover)) return;
  state.hover = next;
  describe();
  redraw();
}

function listPins() {
  state.pins.sort((x, y) => x.number - y.number);
  by("pins").replaceChildren(
    ...state.pins.map(pin => {
      const remove = element("button", { type: "button", "aria-label": `Remove pin ${pin.number}` }, "×");
      remove.addEventListener("click", () => removePins(other => other === pin));
      const text = `vertex ${number(a, pin.a)} of ${a.name} → vertex ${number(b, pin.b)} of ${b.name}, confidence ${percent(confidence[pin.a], 0)}`;
      return element("li", { value: pin.number }, dot(pin.color), `${text} `, remove);
    }),
  );
  by("clear").disabled = by("save-pins").disabled = !state.pins.length;
}

function removePins(which) {
  state.pins = state.pins.filter(pin => !which(pin));
  state.last = null;
  listPins();
  describe();
  redraw();
}

// Index of a vertex in the file of its shape
function number(shape, vertex) {
  return shape.numbers ? shape.numbers[vertex] : vertex;
}

function describe() {
  const out = by("picked"),
    last = state.hover || state.last;
  out.replaceChildren();
  if (!last) return;
  if (last.a >= 0) {
    const from = `vertex ${number(a, last.a)} of ${a.name}`,
      to = `vertex ${number(b, matched[last.a])} of ${b.name}`;
    out.append(dot(CHOSEN), `${capital(from)} → ${to}. Confidence ${percent(confidence[last.a], 0)}.`);
  } else {
    const found = arriving(matched, last.b).map(v => number(a, v));
    const some = found.slice(0, 8).join(", ") + (found.length > 8 ? ", …" : "");
    const which = { 0: "no vertex of A is matched to it.", 1: `vertex ${some} of A is matched to it.` };
    out.append(
      dot(CHOSEN),
      `Vertex ${number(b, last.b)} of ${b.name}: `,
      which[found.length] || `${found.length} vertices of A are matched to it: ${some}.`,
    );
  }
}

function capital(text) {
  return text[0].toUpperCase() + text.slice(1);
}

// Ends of the line of a pin in CSS pixels within the canvas
function lineOf(pin, cells) {
  return [
    [cells[0], a, pin.a],
    [cells[1], b, pin.b],
  ].map(([cell, shape, vertex]) => view.project(cell, camera, marker(shape, vertex).position));
}

// Lines between pins, and their numbers, over the 3D view; the markup holds nothing but numbers
function drawPins(cells) {
  by("overlay").innerHTML = state.pins
    .map(pin => {
      const [[x1, y1], [x2, y2]] = lineOf(pin, cells),
        color = cssColor(pin.color);
      const label = (x, y) => `<text x="${x + 9}" y="${y - 7}" fill="${color}">${pin.number}</text>`;
      return `<line x1="${x1}" y1="${y1}" x2="${x2}" y2="${y2}" stroke="${color}"/>${label(x1, y1)}${label(x2, y2)}`;
    })
    .join("");
}

function download(name, blob) {
  const link = element("a", { download: name, href: URL.createObjectURL(blob) });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

// One line for each vertex of A's file, as in the text file of the map: the vertex of the target's file, or -1
function mapText() {
  const lines = new Array(data.a.file_vertices).fill(-1);
  for (let v = 0; v < a.count; v++) lines[number(a, v)] = number(b, matched[v]);
  return lines.join("\n") + "\n";
}

// As 'acnn match --landmarks' reads them
function pinsText() {
  const rows = state.pins.map(pin => `pin${pin.number} ${number(a, pin.a)} ${number(b, pin.b)}`);
  return ["# name, vertex of A, vertex of B", ...rows].join("\n") + "\n";
}

function saveImage() {
  const cells = stage.cells();
  view.draw(cells, camera);
  const image = element("canvas");
  Object.assign(image, { width: canvas.width, height: canvas.height });
  const context = image.getContext("2d"),
    scale = canvas.width / canvas.clientWidth;
  context.fillStyle = "white";
  context.fillRect(0, 0, image.width, image.height);
  context.drawImage(canvas, 0, 0);
  context.scale(scale, scale);
  context.font = "bold 14px sans-serif";
  for (const pin of state.pins) {
    const [[x1, y1], [x2, y2]] = lineOf(pin, cells);
    context.strokeStyle = context.fillStyle = cssColor(pin.color);
    context.beginPath();
    context.moveTo(x1, y1);
    context.lineTo(x2, y2);
    context.stroke();
    context.fillText(pin.number, x1 + 9, y1 - 7);
    context.fillText(pin.number, x2 + 9, y2 - 7);
  }
  image.toBlob(blob => download("match.png", blob));
}

function refresh() {
  const heat = state.quantity in LIMITS;
  by("bar").hidden = !heat;
  const names = { confidence: "confidence", distortion: "relative change of edge lengths" };
  if (heat)
    showBar(data.stops[state.quantity], ["0 %", "50 %", "100 %"], names[state.quantity] + (REACHED ? "" : "; grey: no match"));
  if (state.quantity === "texture") showTexture();
  repaint();
}

function fillPage() {
  by("title").textContent = data.title;
  for (const [id, shape] of Object.entries({ a, b })) {
    const count = `${shape.count.toLocaleString("en")} ${shape.cloud ? "points" : "vertices"}`;
    by(`${id}-caption`).append(element("b", {}, capital(shape.name)), ` ${shape.file}`, element("br"), count);
  }
  by("with-texture").hidden = !data.b.texture;
  by("up").value = data.up;
  by("up").addEventListener("change", event => {
    a.up = b.up = event.target.value;
    resetCamera();
  });
  if (data.notices.length) {
    by("notices").hidden = false;
    by("notices").append(element("h2", {}, HEADINGS[data.verdict]), ...data.notices.map(text => element("p", {}, text)));
  }
  by("facts").append(...data.facts.map(fact => card(fact.name, fact.value, fact.note)));
  by("footer").textContent =
    "Vertex indices are 0-based, in file order. A is rotated to B by the best rigid alignment of the matches. " +
    `Written by acnn ${data.version}. The page contains the shapes: check the data licence before sharing.`;
  by("quantity").addEventListener("change", event => {
    state.quantity = event.target.value;
    refresh();
  });
  by("clear").addEventListener("click", () => removePins(() => true));
  by("save-image").addEventListener("click", saveImage);
  by("save-map").addEventListener("click", () => download(`${data.map}.txt`, new Blob([mapText()], { type: "text/plain" })));
  by("save-pins").addEventListener("click", () => download("pins.txt", new Blob([pinsText()], { type: "text/plain" })));
}

fillPage();
const large = Math.max(a.faces.length, b.faces.length) > 3 * HOVERED_FACES;
startStage({
  shapes: [a, b],
  cells: matchCells,
  colors,
  pick,
  hover: large ? undefined : hover,
  drawn: drawPins,
  keys: {},
});
if (!view) by("save-image").disabled = true;
refresh();
