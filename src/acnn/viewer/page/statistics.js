// Page of shape statistics: the model with its sliders, the chosen shape, and the scores of all shapes.

const MODES = data.scores[0].length;
const state = { shape: 0, quantity: "plain", across: 0, upwards: Math.min(1, MODES - 1), sliders: new Array(MODES).fill(0) };
const GROUPS = ["first", "second"],
  GROUP_COLORS = ["--refined", "--network"];
const faces = unpack(data.faces);
const mean = coordinates(data.mean),
  modes = data.modes.map(coordinates),
  members = data.shapes.map(coordinates);
const centre = middle(mean);
for (const points of [mean, ...members]) for (let i = 0; i < points.length; i++) points[i] -= centre[i % 3];
const comparison = data.comparison && {
  ...data.comparison,
  difference: values(data.comparison.difference),
  p: values(data.comparison.p),
};
const half = [0, 1, 2].map(d => [mean, ...members].reduce((most, points) => Math.max(most, reach(points, d)), 0));
const model = { positions: Float32Array.from(mean), faces, half, count: mean.length / 3, up: "y" };
const shown = { positions: members[0], faces, half, count: mean.length / 3, up: "y" };
const sliders = [];

// Coordinates of packed points, not centred
function coordinates(given) {
  return Float32Array.from(unpack(given.vertices), (number, i) => number * given.step + given.low[i % 3]);
}

function middle(points) {
  return [0, 1, 2].map(d => {
    let low = Infinity,
      high = -Infinity;
    for (let i = d; i < points.length; i += 3) {
      low = Math.min(low, points[i]);
      high = Math.max(high, points[i]);
    }
    return (low + high) / 2;
  });
}

function reach(points, d) {
  let most = 0;
  for (let i = d; i < points.length; i += 3) most = Math.max(most, Math.abs(points[i]));
  return most;
}

function modelPositions() {
  const positions = Float32Array.from(mean);
  state.sliders.forEach((value, k) => {
    if (value) for (let i = 0; i < positions.length; i++) positions[i] += value * modes[k][i];
  });
  return positions;
}

function distances(positions) {
  const result = new Float32Array(positions.length / 3);
  for (let v = 0; v < result.length; v++)
    result[v] = Math.hypot(...[0, 1, 2].map(d => positions[3 * v + d] - mean[3 * v + d]));
  return result;
}

// The colours of both shapes have one scale, which does not change with the sliders.
const farthest = Math.max(...members.map(points => distances(points).reduce((a, b) => Math.max(a, b), 0)), 1e-12);
const greatest = comparison ? Math.max(comparison.difference.reduce((a, b) => Math.max(a, b), 0), 1e-12) : 1;

function colors(shape) {
  if (state.quantity === "distance") return valueColors(distances(shape.positions), data.stops, farthest);
  if (state.quantity === "difference") return valueColors(comparison.difference, data.stops, greatest);
  if (state.quantity === "p") return valueColors(comparison.p.map(significance), data.stops, 1);
  return plainColors(shape.count);
}

// 0 at p = 1 and 1 at p = 0.001, logarithmic
function significance(p) {
  return Math.min(1, -Math.log10(Math.max(p, 1e-9)) / 3);
}

function statisticsCells() {
  return [cellOf(by("cell-model"), model), cellOf(by("cell-shape"), shown)];
}

function move(shape, positions) {
  shape.positions = positions;
  if (view) view.move(shape.mesh, positions);
}

function setSliders(scores) {
  scores.forEach((value, k) => {
    state.sliders[k] = Math.max(-3, Math.min(3, value));
    sliders[k].input.value = state.sliders[k];
    sliders[k].output.textContent = signed(state.sliders[k]);
  });
  moveModel();
}

function moveModel() {
  move(model, modelPositions());
  drawCross();
  refresh();
}

function signed(value) {
  const text = Math.abs(value).toFixed(1);
  return `${Number(text) === 0 ? "" : value < 0 ? "−" : "+"}${text} sd`;
}

function choose(index) {
  state.shape = (index + members.length) % members.length;
  by("shape").value = state.shape;
  move(shown, members[state.shape]);
  by("scatter").querySelectorAll("circle").forEach((dot, i) => {
    dot.classList.toggle("chosen", i === state.shape);
    dot.setAttribute("aria-pressed", String(i === state.shape));
  });
  const caption = [element("b", {}, data.names[state.shape])];
  if (data.groups && data.groups[state.shape] >= 0) caption.push(` ${comparison.names[data.groups[state.shape]]}`);
  by("shape-caption").replaceChildren(...caption);
  const scores = data.scores[state.shape].slice(0, 4).map(signed).join(", ");
  by("picked").textContent = `${data.names[state.shape]}: scores ${scores}${MODES > 4 ? ", …" : ""}`;
  refresh();
}

function refresh() {
  const number = value => Number(value.toPrecision(3)).toString();
  const bars = {
    distance: [["0", number(farthest / 2), number(farthest)], "distance from the mean"],
    difference: [["0", number(greatest / 2), number(greatest)], "distance of the group means"],
    p: [["1", "0.03", "0.001"], "p-value, corrected; grey: not tested"],
  };
  by("bar").hidden = state.quantity === "plain";
  if (state.quantity !== "plain") showBar(data.stops, ...bars[state.quantity]);
  repaint();
}

function drawScatter() {
  const [x, y] = [state.across, state.upwards];
  const most = Math.max(3, ...data.scores.map(row => Math.max(Math.abs(row[x]), Math.abs(row[y])))) * 1.06;
  const ticks = [-3, -2, -1, 0, 1, 2, 3];
  const axis = k => ({ from: -most, to: most, ticks, text: t => String(t).replace("-", "−"), label: `mode ${k + 1}, sd` });
  const { svg, at } = axes(axis(x), axis(y), `Scores of ${members.length} shapes along modes ${x + 1} and ${y + 1}`, 520, 420);
  svg.setAttribute("role", "group");
  svg.append(drawn("line", { class: "zero", x1: at.x(0), x2: at.x(0), y1: at.top, y2: at.bottom }));
  svg.append(drawn("line", { class: "zero", x1: at.left, x2: at.right, y1: at.y(0), y2: at.y(0) }));
  data.scores.forEach((row, i) => {
    const group = data.groups ? GROUPS[data.groups[i]] || "" : "first";
    const dot = drawn("circle", { cx: at.x(row[x]), cy: at.y(row[y]), r: 6.5, class: group, tabindex: 0, role: "button" });
    dot.setAttribute("aria-label", data.names[i]);
    dot.append(drawn("title", {}, data.names[i]));
    dot.addEventListener("click", event => {
      event.stopPropagation();
      choose(i);
    });
    dot.addEventListener("keydown", event => {
      if (event.key === "Enter" || event.key === " ") {
        event.preventDefault();
        choose(i);
      }
    });
    svg.append(dot);
  });
  svg.addEventListener("click", event => {
    const box = svg.getBoundingClientRect();
    const [px, py] = [((event.clientX - box.left) / box.width) * 520, ((event.clientY - box.top) / box.height) * 420];
    const scores = [...state.sliders];
    scores[x] = at.value(px);
    if (y !== x) scores[y] = most * (1 - (2 * (py - at.top)) / (at.bottom - at.top));
    setSliders(scores);
  });
  svg.append(drawn("path", { class: "cross", id: "cross", fill: "none" }));
  svg.dataset.most = most;
  by("scatter").replaceChildren(svg);
  state.at = at;
  drawCross();
}

function drawCross() {
  const [cx, cy] = [state.at.x(state.sliders[state.across]), state.at.y(state.sliders[state.upwards])];
  by("cross").setAttribute("d", `M${cx - 8} ${cy}H${cx + 8}M${cx} ${cy - 8}V${cy + 8}`);
}

// A line over the number of modes
function drawQuality(id, numbers, share) {
  const high = share ? 1 : Math.max(...numbers, 1e-12);
  const step = share ? 0.25 : nice(high / 4);
  const ticks = Array.from({ length: Math.floor(high / step + 1e-9) + 1 }, (_, i) => i * step);
  const every = Math.ceil(numbers.length / 8);
  const counts = numbers.map((_, i) => i + 1);
  const text = t => (share ? `${Math.round(100 * t)} %` : Number(t.toPrecision(3)).toString());
  const { svg, at } = axes(
    { from: numbers.length > 1 ? 1 : 0, to: numbers.length, ticks: counts.filter(c => c % every === 0), text: String, label: "modes" },
    { from: 0, to: Math.max(high, ticks[ticks.length - 1]), ticks, text },
    `${id} by number of modes, from ${text(numbers[0])} to ${text(numbers[numbers.length - 1])}`,
    360,
    240,
  );
  svg.append(drawn("path", { class: "line", d: path(at, counts, numbers), style: "stroke: var(--refined)" }));
  counts.forEach((c, i) =>
    svg.append(drawn("circle", { cx: at.x(c), cy: at.y(numbers[i]), r: 3.5, style: "fill: var(--refined)" })),
  );
  by(id).replaceChildren(svg);
}

function fillPage() {
  by("title").textContent = data.title;
  by("subtitle").textContent = data.summary;
  if (data.notices.length) {
    by("notices").hidden = false;
    by("notices").append(...data.notices.map(text => element("p", {}, text)));
  }
  by("cards").append(...data.cards.map(fact => card(fact.name, fact.value, fact.note)));
  by("model-caption").append(element("b", {}, "Model"), " mean and modes");
  for (const [id, wanted] of [["across", "across"], ["upwards", "upwards"]]) {
    by(id).append(...data.scores[0].map((_, k) => element("option", { value: k }, `mode ${k + 1}`)));
    by(id).value = state[wanted];
    by(id).addEventListener("change", event => {
      state[wanted] = Number(event.target.value);
      drawScatter();
      choose(state.shape);
    });
  }
  by("shape").append(...data.names.map((name, i) => element("option", { value: i }, name)));
  by("shape").addEventListener("change", event => choose(Number(event.target.value)));
  data.explained.forEach((fraction, k) => {
    const input = element("input", { type: "range", min: -3, max: 3, step: 0.05, value: 0, id: `mode-${k + 1}` });
    const output = element("output", { for: `mode-${k + 1}` }, signed(0));
    input.addEventListener("input", () => {
      state.sliders[k] = Number(input.value);
      output.textContent = signed(state.sliders[k]);
      moveModel();
    });
    by("sliders").append(
      element("label", { for: `mode-${k + 1}` }, `Mode ${k + 1} `, element("small", {}, percent(fraction))),
      input,
      output,
    );
    sliders.push({ input, output });
  });
  by("to-mean").addEventListener("click", () => setSliders(new Array(MODES).fill(0)));
  by("to-shape").addEventListener("click", () => setSliders(data.scores[state.shape]));
  by("up").addEventListener("change", event => {
    model.up = shown.up = event.target.value;
    resetCamera();
  });
  by("quantity").addEventListener("change", event => {
    state.quantity = event.target.value;
    refresh();
  });
  for (const id of ["difference-label", "p-label"]) by(id).hidden = !comparison;
  if (comparison)
    by("scatter-keys").append(
      ...comparison.names.map((name, i) =>
        element("span", {}, element("span", { class: "key-dot", style: `background: var(${GROUP_COLORS[i]})` }), name),
      ),
    );
  drawQuality("compactness", data.compactness, true);
  drawQuality("generalisation", data.generalisation, false);
  drawQuality("specificity", data.specificity, false);
  const heads = ["Mode", "Standard deviation", "Variance", "Cumulative", "Generalisation", "Specificity"];
  const small = value => value.toPrecision(3);
  by("table").append(
    element("thead", {}, element("tr", {}, ...heads.map(text => element("th", { scope: "col" }, text)))),
    element(
      "tbody",
      {},
      ...data.explained.map((fraction, k) =>
        element(
          "tr",
          {},
          element("th", { scope: "row" }, String(k + 1)),
          ...[small(data.deviations[k]), percent(fraction), percent(data.compactness[k])].map(t => element("td", {}, t)),
          ...[small(data.generalisation[k]), small(data.specificity[k])].map(t => element("td", {}, t)),
        ),
      ),
    ),
  );
  by("footer").textContent =
    `Lengths are in the unit of the shapes. Written by acnn ${data.version}. The page contains the shapes: check the ` +
    "data licence before sharing.";
}

fillPage();
startStage({
  shapes: [model, shown],
  cells: statisticsCells,
  colors,
  pick: () => {},
  keys: { n: () => choose(state.shape + 1), p: () => choose(state.shape - 1) },
});
drawScatter();
choose(0);
