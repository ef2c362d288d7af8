// Elements from words: h("button", { class: "primary", onclick }, "Solve").

const SVG = "http://www.w3.org/2000/svg";

export function h(name, properties = {}, ...children) {
  return fill(document.createElement(name), properties, children);
}

export function s(name, properties = {}, ...children) {
  return fill(document.createElementNS(SVG, name), properties, children);
}

function fill(element, properties, children) {
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name in element && !(element instanceof SVGElement) && typeof value !== "string")
      element[name] = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(
    ...children
      .flat(Infinity)
      .filter((child) => child !== null && child !== undefined && child !== false),
  );
  return element;
}

export function replace(element, ...children) {
  element.replaceChildren(
    ...children
      .flat(Infinity)
      .filter((child) => child !== null && child !== undefined && child !== false),
  );
  return element;
}

// A group of buttons of which one is pressed.
export function segments(label, options, value, choose) {
  const name = `s${Math.random().toString(36).slice(2)}`;
  return h(
    "fieldset",
    { class: "segments" },
    h("legend", {}, label),
    options.map(([key, words, title]) =>
      h(
        "label",
        { title },
        h("input", {
          type: "radio",
          name,
          value: key,
          checked: key === value,
          onchange: () => choose(key),
        }),
        h("span", {}, words),
      ),
    ),
  );
}

export const seconds = (value) => {
  if (!Number.isFinite(value)) return "";
  if (value < 1) return "under a second";
  if (value < 90) return `${Math.round(value)} s`;
  return value < 5400 ? `${Math.round(value / 60)} min` : `${(value / 3600).toFixed(1)} h`;
};

export const PREVIEW = "This is a quick preview at low resolution; Best is expected to be better.";

export const plural = (count, word) => `${count} ${word}${count === 1 ? "" : "s"}`;

export const sentence = (words) =>
  words ? `${words[0].toUpperCase()}${words.slice(1)}${/[.!?…]$/.test(words) ? "" : "."}` : "";
