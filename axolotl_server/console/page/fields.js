// Fields for single values. A field returns JSON text, so that numbers stay exactly as entered.

import { el, newId } from "./dom.js";
import { choicesOf, limitsOf } from "./schema.js";

export class FieldError extends Error {
  constructor(message, input) {
    super(message);
    this.input = input;
  }
}

const NUMBER = /^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$/;
const INTEGER = /^-?(0|[1-9][0-9]*)$/;

export function textField(schema, initial) {
  const area = el("textarea", { rows: 1, spellcheck: "false", autocapitalize: "off", value: initial ?? "" });
  if (schema.format === "date") return dateField(initial);
  if (schema.maxLength !== undefined && schema.maxLength <= 10000) area.maxLength = schema.maxLength;
  area.dataset.text = "";
  const grow = () => {
    area.rows = Math.min(16, Math.max(1, area.value.split("\n").length));
  };
  area.addEventListener("input", grow);
  grow();
  return { control: area, read: () => JSON.stringify(area.value) };
}

function dateField(initial) {
  const input = el("input", { type: "date", value: initial ?? "" });
  return {
    control: input,
    read: () => {
      if (!input.value) throw new FieldError("choose a date", input);
      return JSON.stringify(input.value);
    },
  };
}

export function numberField(schema, initial, whole) {
  const start = initial === undefined ? "" : typeof initial === "object" ? JSON.stringify(initial) : String(initial);
  const input = el("input", { type: "text", inputmode: whole ? "numeric" : "decimal", autocomplete: "off", value: start });
  return {
    control: input,
    read: () => {
      const text = input.value.trim().replace(/^\+/, "");
      if (!(whole ? INTEGER : NUMBER).test(text)) {
        throw new FieldError(whole ? "enter an integer, such as 12" : "enter a number, such as 1.5", input);
      }
      return text;
    },
  };
}

export function booleanField(initial) {
  const input = el("input", { type: "checkbox", checked: initial === true });
  return { control: input, read: () => String(input.checked), isCheck: true };
}

export function choiceField(choices, initial) {
  const select = el("select", {}, ...choices.map((one, place) => el("option", { value: String(place) }, one.label)));
  const wanted = JSON.stringify(initial);
  const place = choices.findIndex((one) => JSON.stringify(one.value) === wanted);
  select.value = String(Math.max(0, place));
  return { control: select, read: () => JSON.stringify(choices[Number(select.value)].value) };
}

export function severalField(choices, initial) {
  const chosen = new Set((Array.isArray(initial) ? initial : []).map((one) => JSON.stringify(one)));
  const boxes = choices.map((one) => {
    const text = JSON.stringify(one.value);
    return { text, box: el("input", { type: "checkbox", checked: chosen.has(text) }), label: one.label };
  });
  const group = el("div.several", { role: "group" }, ...boxes.map((one) => el("label.check", {}, one.box, one.label)));
  return {
    control: group,
    isGroup: true,
    read: () => `[${boxes.filter((one) => one.box.checked).map((one) => one.text).join(",")}]`,
  };
}

export function fixedField(value) {
  const text = JSON.stringify(value);
  return { control: el("output.fixed", {}, text), read: () => text };
}

export function rawField(initial, hint = "JSON") {
  const text = initial === undefined ? "" : JSON.stringify(initial, null, 2);
  const rows = Math.min(24, Math.max(2, text.split("\n").length));
  const area = el("textarea.code", { rows, spellcheck: "false", autocapitalize: "off", placeholder: hint, value: text });
  return {
    control: area,
    read: () => {
      try {
        JSON.parse(area.value);
      } catch (error) {
        throw new FieldError(`this is not valid JSON: ${error.message}`, area);
      }
      return area.value.trim();
    },
  };
}

// Adds a label, a description and a place for errors to the control of a field.
export function labelled(field, name, schema, { required, toggle = null }) {
  const id = newId("field");
  const hintId = `${id}-hint`, errorId = `${id}-error`;
  const words = [schema.description, limitsOf(schema)].filter(Boolean);
  const hint = el("p.hint", { id: hintId }, ...words.flatMap((text, place) => (place ? [el("br"), text] : [text])));
  const error = el("p.error", { id: errorId, hidden: true });
  const title = schema.title && schema.title.toLowerCase() !== name.replaceAll("_", " ").toLowerCase() ? schema.title : null;
  const label = el(field.isGroup ? "span.label" : "label.label", field.isGroup ? { id: `${id}-label` } : { for: id },
    el("bdi", {}, name), required ? el("span.required", { title: "required" }, " *") : null,
    title ? el("span.quiet", {}, ` ${title}`) : null);
  field.control.id = id;
  if (field.isGroup) field.control.setAttribute("aria-labelledby", `${id}-label`);
  field.control.setAttribute("aria-describedby", words.length ? `${hintId} ${errorId}` : errorId);
  if (required && !field.isCheck && !field.isGroup && field.control.tagName !== "OUTPUT") {
    field.control.setAttribute("aria-required", "true");
  }
  const head = el("div.head", {}, toggle, field.isCheck ? field.control : null, label);
  const element = el("div.field", {}, head, words.length ? hint : null, field.isCheck ? null : field.control, error);
  return { element, read: () => readWithError(field, error) };
}

function readWithError(field, error) {
  try {
    const text = field.read();
    error.hidden = true;
    field.control.removeAttribute("aria-invalid");
    return text;
  } catch (problem) {
    if (problem instanceof FieldError && problem.input === field.control) {
      error.textContent = problem.message;
      error.hidden = false;
      field.control.setAttribute("aria-invalid", "true");
    }
    throw problem;
  }
}

export { choicesOf };
