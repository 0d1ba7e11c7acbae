// Page of a match: A and the shape it is matched to, their colours, and the picked point.

const state = { quantity: "match", vertex: -1, targetVertex: -1 };
const [a, b] = [data.a, data.b].map(given => {
  const { name, file, cloud, up } = given;
  return Object.assign(unpackShape(given), { name, file, cloud, up, numbers: given.numbers && unpack(given.numbers) });
});
const matched = unpack(data.matched),
  confidence = values(data.confidence),
  targetConfidence = transferred(confidence, matched, b),
  targetColors = unpack(data.b.colors);
const REACHED = !targetConfidence.some(Number.isNaN);
const SHOWN = 40;
const HEADINGS = {
  good: "Notes on this match",
  doubtful: "This match is doubtful",
  failed: "This match has failed",
};

function matchCells() {
  const onA = [],
    onB = [];
  if (state.vertex >= 0) {
    onA.push(marker(a, state.vertex, CHOSEN));
    onB.push(marker(b, matched[state.vertex], CHOSEN));
  } else if (state.targetVertex >= 0) {
    onB.push(marker(b, state.targetVertex, CHOSEN));
    for (const v of arriving(matched, state.targetVertex).slice(0, SHOWN)) onA.push(marker(a, v, CHOSEN, 0.8));
  }
  return [
    cellOf(by("cell-a"), a, { markers: onA, owner: "a" }),
    cellOf(by("cell-b"), b, { markers: onB, owner: "b" }),
  ];
}

function colors(shape) {
  if (state.quantity === "plain") return plainColors(shape.count);
  if (state.quantity === "match") return shape === a ? matchColors(matched, targetColors) : targetColors;
  return valueColors(shape === a ? confidence : targetConfidence, data.stops);
}

function pick(owner, vertex) {
  state.vertex = owner === "a" ? vertex : -1;
  state.targetVertex = owner === "b" ? vertex : -1;
  describePick();
  redraw();
}

// Index of a vertex in the file of its shape
function number(shape, vertex) {
  return shape.numbers ? shape.numbers[vertex] : vertex;
}

function describePick() {
  const out = by("picked");
  out.replaceChildren();
  if (state.vertex >= 0) {
    const from = `vertex ${number(a, state.vertex)} of ${a.name}`,
      to = `vertex ${number(b, matched[state.vertex])} of ${b.name}`;
    out.append(dot(CHOSEN), `${capital(from)} → ${to}. Confidence ${percent(confidence[state.vertex], 0)}.`);
  } else if (state.targetVertex >= 0) {
    const found = arriving(matched, state.targetVertex).map(v => number(a, v));
    const some = found.slice(0, 8).join(", ") + (found.length > 8 ? ", …" : "");
    const which = { 0: "no vertex of A is matched to it.", 1: `vertex ${some} of A is matched to it.` };
    out.append(
      dot(CHOSEN),
      `Vertex ${number(b, state.targetVertex)} of ${b.name}: `,
      which[found.length] || `${found.length} vertices of A are matched to it: ${some}.`,
    );
  }
}

function capital(text) {
  return text[0].toUpperCase() + text.slice(1);
}

function refresh() {
  const heat = state.quantity === "confidence";
  by("bar").hidden = !heat;
  if (heat) showBar(data.stops, ["0 %", "50 %", "100 %"], REACHED ? "confidence" : "confidence; grey: no match");
  repaint();
}

function fillPage() {
  by("title").textContent = data.title;
  for (const [id, shape] of Object.entries({ a, b })) {
    const count = `${shape.count.toLocaleString("en")} ${shape.cloud ? "points" : "vertices"}`;
    by(`${id}-caption`).append(element("b", {}, capital(shape.name)), ` ${shape.file}`, element("br"), count);
    by(`${id}-up`).value = shape.up;
    by(`${id}-up`).addEventListener("change", event => {
      shape.up = event.target.value;
      resetCamera();
    });
  }
  if (data.notices.length) {
    by("notices").hidden = false;
    by("notices").append(element("h2", {}, HEADINGS[data.verdict]), ...data.notices.map(text => element("p", {}, text)));
  }
  by("facts").append(...data.facts.map(fact => card(fact.name, fact.value, fact.note)));
  by("footer").textContent =
    `Vertex indices are 0-based, in file order. Written by acnn ${data.version}. The page contains the shapes: ` +
    "check the data licence before sharing.";
  by("quantity").addEventListener("change", event => {
    state.quantity = event.target.value;
    refresh();
  });
}

fillPage();
startStage({ shapes: [a, b], cells: matchCells, colors, pick, keys: {} });
refresh();
