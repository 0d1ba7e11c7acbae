// Texts, key figures and tables of the page.

function fillPage(choose) {
  const { network, refined } = data.figures;
  by("title").textContent = data.title;
  by("subtitle").textContent =
    `${data.summary} Errors are geodesic distances divided by the ${data.length} of the reference.`;
  fillCards(network, refined);
  fillPublished(network, refined);
  fillTable(choose);
  const rows = data.timings.map(([name, value]) =>
    element("tr", {}, element("th", { scope: "row" }, name), element("td", {}, value)),
  );
  by("timings").append(element("tbody", {}, ...rows));
  if (data.log.length && data.log[0].length > 1) drawLoss(by("log"), ...data.log);
  else by("log-figure").hidden = true;
  by("config").textContent = data.config;
  by("footer").textContent =
    `Written by acnn ${data.version}. The page contains the shapes: check the data licence before sharing.`;
}

function fillCards(network, refined) {
  const note = refined ? `network → refined (${data.refinement})` : "network";
  const add = (name, text) => {
    const value = refined ? [element("small", {}, `${text(network)} → `), text(refined)] : text(network);
    by("cards").append(card(name, value, note));
  };
  add("Exact matches", f => percent(f.exact));
  add("Mean error × 100", f => f.mean_error_x100.toFixed(2));
  add("Area under the curve, to 0.3", f => f.auc.toFixed(3));
  add("Coverage of the reference", f => percent(f.coverage));
}

function fillPublished(network, refined) {
  const given = data.published;
  const figure = f => (given.exact ? 100 * f.exact : f.mean_error_x100);
  const rows = given.entries.map(e => ({
    name: e.method,
    value: e.value,
    note: [e.source, e.note].filter(Boolean).join("; "),
  }));
  rows.push({ name: "this run, network", value: figure(network), own: true });
  if (refined) rows.push({ name: "this run, refined", value: figure(refined), own: true });
  drawRanking(by("published"), rows, given.exact, given.exact ? " %" : "");
  const caution = given.comparable
    ? "Compare only where data and split are the same."
    : `This run is on “${data.dataset}”: the figures are for orientation only.`;
  by("published-caption").textContent = `Published: ${given.quantity}. ${given.data}. ${caution}`;
  const sentences = ["Percentage of points whose match lies within this distance of the ground truth."];
  if (given.exact) sentences.push("Dots on the axis: published percentages of exact matches.");
  if (data.curves["network symmetric"]) sentences.push("Dashed: the mirrored point also counts as correct.");
  by("curves-caption").textContent = sentences.join(" ");
}

function fillTable(choose) {
  const last = MAPS[MAPS.length - 1];
  const row = (name, figures, count) => {
    const pairs = MAPS.flatMap(m => [percent(figures[m].exact), figures[m].mean_error_x100.toFixed(2)]);
    const cells = [...pairs, percent(figures[last].coverage), count].map(text => element("td", {}, text));
    return element("tr", {}, element("th", { scope: "row" }, name), ...cells);
  };
  const titles = ["Shape", ...MAPS.flatMap(m => [`exact, ${m}`, `error × 100, ${m}`]), "coverage", "vertices"];
  const head = element("tr", {}, ...titles.map(text => element("th", { scope: "col" }, text)));
  const body = element("tbody");
  shapes.forEach((shape, i) => {
    const made = row(shape.name + (shape.missing ? " (partial)" : ""), shape.figures, String(shape.count));
    made.dataset.shape = i;
    made.tabIndex = 0;
    made.title = "Show this shape";
    made.addEventListener("click", () => choose(i));
    made.addEventListener("keydown", event => {
      if (event.key === "Enter") choose(i);
    });
    body.append(made);
  });
  by("table").append(element("thead", {}, head), body, element("tfoot", {}, row(`mean over ${data.measured}`, data.figures, "")));
}
