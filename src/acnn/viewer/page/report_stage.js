// 3D stage of the report: the reference, the chosen shape, thumbnails of all shapes, and the picked point.

const buttons = [];

function reportCells() {
  const shape = shapes[state.shape],
    map = shape[state.map],
    onReference = [],
    onShape = [];
  if (state.vertex >= 0) {
    onShape.push(marker(shape, state.vertex, CHOSEN));
    const truth = shape.truth[state.vertex],
      match = map[state.vertex];
    if (known(truth, reference.count) && truth !== match) onReference.push(marker(reference, truth, TRUE));
    onReference.push(marker(reference, match, CHOSEN));
  } else if (state.referenceVertex >= 0) {
    onReference.push(marker(reference, state.referenceVertex, CHOSEN));
    for (const v of arriving(map, state.referenceVertex).slice(0, 40)) onShape.push(marker(shape, v, CHOSEN, 0.8));
  }
  const strip = by("thumbs").getBoundingClientRect();
  const small = buttons
    .map((button, i) => ({ button, shape: shapes[i], box: button.getBoundingClientRect() }))
    .filter(({ box }) => box.right > strip.left && box.left < strip.right)
    .map(({ button, shape }) => cellOf(button, shape, { zoom: 1.15 }, 26));
  return [
    cellOf(by("cell-reference"), reference, { markers: onReference, owner: "reference" }),
    cellOf(by("cell-shape"), shape, { markers: onShape, owner: "shape" }),
    ...small,
  ];
}

function pick(owner, vertex) {
  state.vertex = owner === "shape" ? vertex : -1;
  state.referenceVertex = owner === "reference" ? vertex : -1;
  describePick();
  redraw();
}

// Text about the picked point
function describePick() {
  const shape = shapes[state.shape],
    map = shape[state.map],
    out = by("picked");
  out.replaceChildren();
  if (state.vertex >= 0) {
    const v = state.vertex,
      match = map[v],
      truth = shape.truth[v],
      error = shape[`${state.map}Error`][v];
    out.append(dot(CHOSEN), `Vertex ${v} of ${shape.name} → reference vertex ${match} (${state.map})`);
    if (known(truth, reference.count))
      out.append(
        truth === match ? ", which is correct" : ". ",
        truth === match ? "" : dot(TRUE),
        truth === match ? "" : `Ground truth: ${truth}`,
      );
    if (!Number.isNaN(error)) out.append(`. Error ${error.toFixed(4)} ${data.length}`);
    out.append(`. Network confidence ${percent(shape.confidence[v], 0)}.`);
  } else if (state.referenceVertex >= 0) {
    const count = arriving(map, state.referenceVertex).length;
    const gone = shape.missing && shape.missing[state.referenceVertex] ? " It lies in a region missing from the partial shape." : "";
    out.append(
      dot(CHOSEN),
      `Reference vertex ${state.referenceVertex}: ${count === 1 ? "1 vertex" : `${count} vertices`} of ${shape.name} matched to it (${state.map}).${gone}`,
    );
  }
}
