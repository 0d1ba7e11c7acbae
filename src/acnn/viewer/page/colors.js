// Vertex colours, (n * 3) bytes, and the colour bar.

const GREY = [198, 200, 203],
  FADED = [226, 227, 229];
const CHOSEN = [0.96, 0.2, 0.45],
  TRUE = [0.1, 0.75, 0.35];

function plainColors(count) {
  const colors = new Uint8Array(3 * count);
  for (let v = 0; v < count; v++) colors.set(GREY, 3 * v);
  return colors;
}

// Every vertex has the colour of its match.
function matchColors(map, ofTarget) {
  const colors = new Uint8Array(3 * map.length);
  for (let v = 0; v < map.length; v++)
    for (let c = 0; c < 3; c++) colors[3 * v + c] = ofTarget[3 * map[v] + c];
  return colors;
}

// Values from 0 to top along colour stops; unknown ones are grey.
function valueColors(numbers, stops, top = 1) {
  const colors = new Uint8Array(3 * numbers.length);
  numbers.forEach((value, v) => colors.set(Number.isNaN(value) ? GREY : along(stops, value / top), 3 * v));
  return colors;
}

// Colour of a fraction in 0..1 along colour stops
function along(stops, fraction) {
  const position = Math.max(0, Math.min(1, fraction)) * (stops.length - 1),
    i = Math.min(stops.length - 2, Math.floor(position));
  return [0, 1, 2].map(c => stops[i][c] + (position - i) * (stops[i + 1][c] - stops[i][c]));
}

// ticks: texts at the beginning, the middle and the end
function showBar(stops, ticks, name) {
  by("bar-strip").style.background = `linear-gradient(to right, ${stops.map(c => `rgb(${c.join()})`).join()})`;
  by("bar-ticks").replaceChildren(...ticks.map(text => element("span", {}, text)));
  by("bar-name").textContent = name;
}
