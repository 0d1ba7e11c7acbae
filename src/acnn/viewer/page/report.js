// Report page: controls, captions and event handlers.

function choose(index) {
  state.shape = (index + shapes.length) % shapes.length;
  Object.assign(state, { vertex: -1, referenceVertex: -1 });
  by("shape").value = state.shape;
  refresh();
}

function refresh() {
  const shape = shapes[state.shape],
    figures = shape.figures[state.map] || shape.figures.network;
  by("shape-caption").replaceChildren(
    element("b", {}, shape.name),
    ` ${shape.cloud ? "(point cloud) " : ""}${state.map}: ${percent(figures.exact)} exact, error ${figures.mean_error_x100.toFixed(2)}`,
  );
  buttons.forEach((button, i) => button.setAttribute("aria-pressed", String(i === state.shape)));
  for (const row of by("table").tBodies[0].rows)
    row.classList.toggle("chosen", Number(row.dataset.shape) === state.shape);
  by("bar").hidden = !isHeat();
  by("bar-range").hidden = state.quantity !== "error";
  by("legend").textContent = { match: "Matched points have the same colour", plain: "" }[state.quantity] || "";
  if (shape.missing && state.quantity === "match") by("legend").textContent += "; pale: missing from the partial shape";
  if (isHeat()) {
    const error = state.quantity === "error";
    const tick = s => (error ? Number((s * state.range).toPrecision(2)).toString() + (s === 1 ? "+" : "") : percent(s, 0));
    const name = error ? `error / ${data.length}` : "network confidence";
    showBar(data.scales[state.quantity], [0, 0.5, 1].map(tick), name);
  }
  drawAllCurves();
  describePick();
  repaint();
}

function drawAllCurves() {
  const look = {
    network: ["--network", ""],
    refined: ["--refined", ""],
    "network symmetric": ["--network", "6 4"],
    "refined symmetric": ["--refined", "6 4"],
  };
  const lines = Object.entries(data.curves).map(([name, line]) => ({
    name,
    values: line,
    color: look[name][0],
    dash: look[name][1],
  }));
  const shape = shapes[state.shape],
    own = shape.figures[state.map];
  if (own && shapes.length > 1)
    lines.push({ name: `${shape.name}, ${state.map}`, values: own.curve, color: "--other", dash: "2 3", thin: true });
  const marks = data.published.exact ? data.published.entries.map(e => ({ name: e.method, value: e.value })) : [];
  drawCurves(by("curves"), data.thresholds, lines, marks, `geodesic error / ${data.length} of the reference`);
}

function connectControls() {
  by("reference-caption").textContent = "Reference";
  shapes.forEach((shape, i) => {
    by("shape").append(element("option", { value: i }, shape.name));
    const button = element("button", { type: "button", "aria-pressed": "false" }, shape.name);
    button.addEventListener("click", () => choose(i));
    buttons.push(button);
    by("thumbs").append(element("li", {}, button));
  });
  for (const range of RANGES) by("range").append(element("option", { value: range }, String(range)));
  by("range").value = state.range;
  for (const input of document.querySelectorAll("input[name=map]")) {
    input.disabled = !MAPS.includes(input.value);
    input.checked = input.value === state.map;
  }
  for (const name of ["quantity", "map"]) {
    by(name).addEventListener("change", event => {
      state[name] = event.target.value;
      refresh();
    });
  }
  by("shape").addEventListener("change", event => choose(Number(event.target.value)));
  by("range").addEventListener("change", event => {
    state.range = Number(event.target.value);
    refresh();
  });
  by("up").addEventListener("change", () => {
    turnUp();
    resetCamera();
  });
  turnUp();
  by("thumbs").addEventListener("scroll", redraw);
}

function turnUp() {
  for (const shape of [reference, ...shapes]) shape.up = by("up").value;
}

fillPage(choose);
connectControls();
startStage({
  shapes: [reference, ...shapes],
  cells: reportCells,
  colors: shape => (shape === reference ? referenceColors(shapes[state.shape]) : shapeColors(shape)),
  pick,
  keys: { n: () => choose(state.shape + 1), p: () => choose(state.shape - 1) },
});
refresh();
