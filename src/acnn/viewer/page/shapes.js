// Data of the report: state, reference, shapes, and the colours of their vertices.

const MAPS = data.figures.refined ? ["network", "refined"] : ["network"];
const RANGES = [0.01, 0.02, 0.05, 0.1, 0.2, 0.3];

const state = { shape: 0, quantity: "match", map: MAPS[MAPS.length - 1], range: 0.1, vertex: -1, referenceVertex: -1 };
const reference = unpackShape(data.reference);
reference.colors = unpack(data.reference.colors);
const shapes = data.shapes.map(given => {
  const shape = unpackShape(given);
  for (const name of ["network", "refined", "truth", "missing"]) shape[name] = given[name] && unpack(given[name]);
  for (const name of ["networkError", "refinedError", "confidence"]) shape[name] = given[name] && values(given[name]);
  return Object.assign(shape, { name: given.name, cloud: given.cloud, figures: given.figures });
});
const extent = shape => Math.hypot(...shape.half);
for (const shape of shapes) {
  // a shape in very different units is drawn at the size of the reference
  const ratio = extent(shape) / extent(reference);
  if (ratio > 3 || ratio < 1 / 6) rescale(shape, 1 / ratio);
}

function rescale(shape, factor) {
  for (let i = 0; i < shape.positions.length; i++) shape.positions[i] *= factor;
  shape.half = shape.half.map(h => h * factor);
}

function isHeat() {
  return state.quantity === "error" || state.quantity === "confidence";
}

function heatColors(numbers) {
  return valueColors(numbers, data.scales[state.quantity], state.quantity === "error" ? state.range : 1);
}

function shown(shape) {
  return state.quantity === "confidence" ? shape.confidence : shape[`${state.map}Error`];
}

function shapeColors(shape) {
  if (state.quantity === "match") return matchColors(shape[state.map], reference.colors);
  return isHeat() ? heatColors(shown(shape)) : plainColors(shape.count);
}

// Colours of the reference beside a shape: its own, or the values of the shape at the matched vertices.
function referenceColors(shape) {
  if (state.quantity === "plain") return plainColors(reference.count);
  const targets = state.quantity === "error" ? shape.truth : shape[state.map];
  const colors = isHeat() ? heatColors(transferred(shown(shape), targets, reference)) : Uint8Array.from(reference.colors);
  if (shape.missing)
    for (let v = 0; v < reference.count; v++) if (shape.missing[v]) colors.set(FADED, 3 * v);
  return colors;
}
