// Functions that make elements. Text is always inserted as text; nothing on the page parses HTML.

const SVG = "http://www.w3.org/2000/svg";
let lastId = 0;

export const find = (selector) => document.querySelector(selector);

export function newId(word) {
  lastId += 1;
  return `${word}-${lastId}`;
}

// el("button.primary", {type: "submit", onclick: f}, "Call", another)
export function el(what, attributes = {}, ...children) {
  const [name, ...classes] = what.split(".");
  const element = document.createElement(name);
  if (classes.length) element.className = classes.join(" ");
  return filled(element, attributes, children);
}

export function svg(name, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, name), attributes, children);
}

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "value" || name === "checked") element[name] = value;
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.filter(isPresent));
  return element;
}

function isPresent(child) {
  return child !== null && child !== undefined;
}

// A name from outside, isolated so that it cannot change the direction of the text around it.
export function given(text) {
  return el("bdi", {}, text);
}

// A member of an object with names from outside; inherited members do not count.
export function own(object, name) {
  return object !== null && typeof object === "object" && Object.hasOwn(object, name) ? object[name] : undefined;
}

export function replace(parent, ...children) {
  parent.replaceChildren(...children.filter(isPresent));
}

export function facts(pairs) {
  const list = el("dl.facts");
  for (const [name, value] of pairs) {
    if (value === null || value === undefined || value === "") continue;
    list.append(el("dt", {}, name), el("dd", {}, value instanceof Node ? value : String(value)));
  }
  return list;
}

// Saves a text as a file.
export function download(name, text, type = "application/json") {
  const url = URL.createObjectURL(new Blob([text], { type }));
  el("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}
