// SVG charts: error curves, comparison with published figures, and the training loss.

const SVG = "http://www.w3.org/2000/svg";

function drawn(name, attributes = {}, text) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

// A frame with both axes. x, y: {from, to, ticks, text(tick), label}; returns the svg and its coordinate functions.
function axes(x, y, describe, width = 640, height = 360) {
  const left = 46,
    right = 12,
    top = 12,
    bottom = 44;
  const size = width > 500 ? "wide" : "";
  const svg = drawn("svg", { class: size, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": describe });
  const at = {
    x: value => left + ((value - x.from) / (x.to - x.from || 1)) * (width - left - right),
    y: value => height - bottom - ((value - y.from) / (y.to - y.from || 1)) * (height - top - bottom),
    value: position => x.from + ((position - left) / (width - left - right)) * (x.to - x.from),
    left,
    right: width - right,
    top,
    bottom: height - bottom,
  };
  for (const tick of y.ticks) {
    svg.append(drawn("line", { class: "grid", x1: left, x2: width - right, y1: at.y(tick), y2: at.y(tick) }));
    svg.append(drawn("text", { x: left - 8, y: at.y(tick) + 4, "text-anchor": "end" }, y.text(tick)));
  }
  for (const tick of x.ticks) {
    svg.append(drawn("line", { class: "grid", x1: at.x(tick), x2: at.x(tick), y1: at.bottom, y2: at.bottom + 4 }));
    svg.append(drawn("text", { x: at.x(tick), y: at.bottom + 18, "text-anchor": "middle" }, x.text(tick)));
  }
  svg.append(drawn("text", { x: (left + width - right) / 2, y: height - 6, "text-anchor": "middle" }, x.label));
  return { svg, at };
}

function path(at, xs, ys) {
  return xs.map((x, i) => `${i ? "L" : "M"}${at.x(x).toFixed(1)} ${at.y(ys[i]).toFixed(1)}`).join("");
}

// Princeton curves. lines: [{name, values, color, dash, thin}]; marks: [{name, value}] percentages at error 0
function drawCurves(holder, thresholds, lines, marks, xLabel) {
  const last = thresholds[thresholds.length - 1];
  const ticks = [0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3].filter(t => t <= last + 1e-9);
  const sentence =
    "Percentage of points within an error. " + lines.map(l => `${l.name}: ${percent(l.values[0])} exact`).join("; ");
  const { svg, at } = axes(
    { from: 0, to: last, ticks, text: t => t.toString(), label: xLabel },
    { from: 0, to: 1, ticks: [0, 0.2, 0.4, 0.6, 0.8, 1], text: t => `${Math.round(100 * t)} %` },
    sentence,
  );
  for (const mark of marks) {
    const dot = drawn("circle", { class: "published", cx: at.x(0), cy: at.y(mark.value / 100), r: 4 });
    dot.append(drawn("title", {}, `${mark.name}: ${mark.value} % exact`));
    svg.append(dot);
  }
  for (const line of lines) {
    svg.append(
      drawn("path", {
        class: line.thin ? "line thin" : "line",
        d: path(at, thresholds, line.values),
        style: `stroke: var(${line.color})`,
        "stroke-dasharray": line.dash || "",
      }),
    );
  }
  const cursor = drawn("line", { class: "cursor", y1: at.top, y2: at.bottom, visibility: "hidden" });
  svg.append(cursor);
  const keys = element("div", { class: "keys" });
  const values = lines.map(line => {
    const sample = drawn("svg", { viewBox: "0 0 30 10", "aria-hidden": "true" });
    sample.append(
      drawn("line", {
        x1: 1,
        x2: 29,
        y1: 5,
        y2: 5,
        style: `stroke: var(${line.color}); stroke-width: ${line.thin ? 1.5 : 2.5}`,
        "stroke-dasharray": line.dash || "",
      }),
    );
    const value = element("span");
    keys.append(element("span", {}, sample, line.name, value));
    return value;
  });
  const where = element("span");
  keys.append(where);
  const show = index => {
    cursor.setAttribute("visibility", index < 0 ? "hidden" : "visible");
    if (index >= 0) for (const end of ["x1", "x2"]) cursor.setAttribute(end, at.x(thresholds[index]));
    values.forEach((value, i) => {
      value.textContent = index < 0 ? "" : ` ${percent(lines[i].values[index])}`;
    });
    where.textContent = index < 0 ? "" : `within ${thresholds[index].toFixed(3)}`;
  };
  svg.addEventListener("pointermove", event => {
    const box = svg.getBoundingClientRect();
    const value = at.value(((event.clientX - box.left) / box.width) * 640);
    show(Math.max(0, Math.min(thresholds.length - 1, Math.round((value / last) * (thresholds.length - 1)))));
  });
  svg.addEventListener("pointerleave", () => show(-1));
  holder.replaceChildren(svg, keys);
}

// Bars from best to worst. rows: [{name, value, own, note}]
function drawRanking(holder, rows, larger, unit) {
  const sorted = [...rows].sort((a, b) => (larger ? b.value - a.value : a.value - b.value));
  const top = larger ? 100 : Math.max(...rows.map(r => r.value)) || 1;
  const list = element("ul", { class: "rank" });
  for (const row of sorted) {
    const own = row.own ? " own" : "";
    const fill = element("span", {
      class: "fill",
      style: `width: ${Math.max(0.5, (100 * row.value) / top).toFixed(1)}%`,
    });
    const item = element(
      "li",
      { title: row.note || "" },
      element("span", { class: own }, row.name),
      element("span", { class: "track" + own }, fill),
      element("span", { class: "value" + own }, `${row.value.toFixed(larger ? 1 : 2)}${unit}`),
    );
    list.append(item);
  }
  holder.replaceChildren(list);
}

function drawLoss(holder, seconds, loss) {
  const end = seconds[seconds.length - 1],
    high = Math.max(...loss);
  const unit = end > 7200 ? [3600, "h"] : end > 180 ? [60, "min"] : [1, "s"];
  const step = nice(high / 4),
    time = nice(end / unit[0] / 5);
  const count = (to, by) => Array.from({ length: Math.floor(to / by + 1e-9) + 1 }, (_, i) => i * by);
  const trim = value => Number(value.toPrecision(3)).toString();
  const { svg, at } = axes(
    {
      from: 0,
      to: end,
      ticks: count(end / unit[0], time).map(t => t * unit[0]),
      text: t => trim(t / unit[0]),
      label: `training time, ${unit[1]}`,
    },
    { from: 0, to: Math.max(high, step), ticks: count(high, step), text: trim },
    `Training loss, from ${trim(loss[0])} to ${trim(loss[loss.length - 1])}`,
    440,
    240,
  );
  svg.append(drawn("path", { class: "line", d: path(at, seconds, loss), style: "stroke: var(--network)" }));
  holder.replaceChildren(svg);
}

function nice(value) {
  const power = 10 ** Math.floor(Math.log10(Math.max(value, 1e-12)));
  return [1, 2, 5, 10].map(m => m * power).find(v => v >= value) || value;
}
