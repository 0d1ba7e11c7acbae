// The data of the page: what is chosen, the shapes, and the colours of their vertices.

const data = JSON.parse(document.getElementById("data").textContent);
const by = id => document.getElementById(id);
const GREY = [198, 200, 203],
  FADED = [226, 227, 229];
const CHOSEN = [0.96, 0.2, 0.45],
  TRUE = [0.1, 0.75, 0.35];
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
  // a shape in quite another unit is drawn at the reference's size
  const ratio = extent(shape) / extent(reference);
  if (ratio > 3 || ratio < 1 / 6) rescale(shape, 1 / ratio);
}
const camera = { half: [0, 1, 2].map(d => Math.max(...[reference, ...shapes].map(s => s.half[d]))) };

function unpack(packed) {
  const text = atob(packed.data),
    bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  return {
    u1: bytes,
    u2: new Uint16Array(bytes.buffer, 0, bytes.length >> 1),
    u4: bytes.length % 4 ? null : new Uint32Array(bytes.buffer),
  }[packed.type];
}

function values(packed) {
  return Float32Array.from(unpack(packed), v => (v === 65535 ? NaN : v * packed.scale));
}

function unpackShape(given) {
  const numbers = unpack(given.vertices),
    places = new Float32Array(numbers.length);
  const low = [Infinity, Infinity, Infinity],
    high = [-Infinity, -Infinity, -Infinity];
  for (let i = 0; i < numbers.length; i++) {
    places[i] = numbers[i] * given.step;
    low[i % 3] = Math.min(low[i % 3], places[i]);
    high[i % 3] = Math.max(high[i % 3], places[i]);
  }
  for (let i = 0; i < places.length; i++) places[i] -= (low[i % 3] + high[i % 3]) / 2;
  return {
    places,
    faces: unpack(given.faces),
    half: [0, 1, 2].map(d => (high[d] - low[d]) / 2),
    count: places.length / 3,
  };
}

function rescale(shape, factor) {
  for (let i = 0; i < shape.places.length; i++) shape.places[i] *= factor;
  shape.half = shape.half.map(h => h * factor);
}

function known(match, limit) {
  return match < limit;
}

// Colour of a share in 0..1 along a scale of stops
function along(stops, share) {
  const place = Math.max(0, Math.min(1, share)) * (stops.length - 1),
    i = Math.min(stops.length - 2, Math.floor(place));
  return [0, 1, 2].map(c => stops[i][c] + (place - i) * (stops[i + 1][c] - stops[i][c]));
}

function scaled(value) {
  if (Number.isNaN(value)) return GREY;
  return state.quantity === "error"
    ? along(data.scales.error, value / state.range)
    : along(data.scales.confidence, value);
}

function shown(shape) {
  return state.quantity === "confidence" ? shape.confidence : shape[`${state.map}Error`];
}

function shapeColors(shape) {
  const colors = new Uint8Array(shape.places.length),
    map = shape[state.map];
  for (let v = 0; v < shape.count; v++) {
    let color = GREY;
    if (state.quantity === "match") color = [0, 1, 2].map(c => reference.colors[3 * map[v] + c]);
    else if (state.quantity !== "plain") color = scaled(shown(shape)[v]);
    colors.set(color, 3 * v);
  }
  return colors;
}

// The reference beside a shape: its own colours, or the shape's numbers at the places where they belong.
function referenceColors(shape) {
  const colors = Uint8Array.from(reference.colors),
    n = reference.count;
  if (state.quantity === "plain") colors.fill(GREY[0]);
  if (state.quantity === "error" || state.quantity === "confidence") {
    const numbers = carried(shape, shown(shape), state.quantity === "error" ? shape.truth : shape[state.map]);
    for (let v = 0; v < n; v++) colors.set(scaled(numbers[v]), 3 * v);
  }
  if (shape.missing && state.quantity !== "plain") {
    for (let v = 0; v < n; v++) if (shape.missing[v]) colors.set(FADED, 3 * v);
  }
  return colors;
}

// Mean of a shape's numbers over the vertices that go to each reference vertex; gaps take the mean around them.
function carried(shape, numbers, map) {
  const n = reference.count,
    sum = new Float64Array(n),
    count = new Float64Array(n);
  numbers.forEach((value, v) => {
    if (!Number.isNaN(value) && known(map[v], n)) {
      sum[map[v]] += value;
      count[map[v]] += 1;
    }
  });
  for (let round = 0; round < 4; round++) {
    const moreSum = new Float64Array(n),
      moreCount = new Float64Array(n),
      f = reference.faces;
    for (let k = 0; k < f.length; k += 3)
      for (let a = 0; a < 3; a++)
        for (let b = 0; b < 3; b++) {
          if (!count[f[k + a]] && count[f[k + b]]) {
            moreSum[f[k + a]] += sum[f[k + b]] / count[f[k + b]];
            moreCount[f[k + a]] += 1;
          }
        }
    for (let v = 0; v < n; v++)
      if (!count[v] && moreCount[v]) {
        sum[v] = moreSum[v];
        count[v] = moreCount[v];
      }
  }
  return Float32Array.from(sum, (s, v) => (count[v] ? s / count[v] : NaN));
}
