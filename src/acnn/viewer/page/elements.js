// Elements of the page, and formatting of numbers.

const by = id => document.getElementById(id);

function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key === "class") made.className = value;
    else made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
}

// A key figure: value is text or nodes
function card(name, value, note) {
  return element(
    "div",
    { class: "card" },
    element("div", { class: "name" }, name),
    element("div", { class: "value" }, ...[value].flat()),
    element("div", { class: "note" }, note),
  );
}

// [r, g, b] in 0..1 as a colour of style sheets
function cssColor(color) {
  return `rgb(${color.map(c => Math.round(255 * c)).join()})`;
}

// A dot in the colour of a marker, [r, g, b] in 0..1
function dot(color) {
  return element("span", { class: "dot", style: `background: ${cssColor(color)}` });
}

function percent(fraction, digits = 1) {
  return `${(100 * fraction).toFixed(digits)}\u00a0%`;
}
