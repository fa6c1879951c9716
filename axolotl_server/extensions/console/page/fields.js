// Fields for single values. A field returns JSON text, so that numbers stay exactly as entered.

import { numberProblem, textProblem } from "./checks.js";
import { el, newId, replace } from "./dom.js";
import { exampleOf, limitsOf } from "./schema.js";

const NUMBER = /^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$/;
const INTEGER = /^-?(0|[1-9][0-9]*)$/;
const LONG_TEXT = 500, MAX_SUGGESTIONS = 50, SUGGEST_MILLISECONDS = 200;
const TYPING = { spellcheck: "false", autocapitalize: "off", autocomplete: "off" };

export class FieldError extends Error {
  constructor(message, input) {
    super(message);
    this.input = input;
  }
}

// Throws the problem of a value, if it has one.
export function refuse(problem, input) {
  if (problem) throw new FieldError(problem, input);
}

function placeholder(schema) {
  const example = exampleOf(schema);
  return example && !schema.writeOnly ? `e.g. ${example.split("\n", 1)[0]}` : undefined;
}

export function textField(schema, initial) {
  if (schema.format === "date") return dateField(initial);
  const start = initial ?? "";
  const isLong = start.includes("\n") || exampleOf(schema).includes("\n") || schema.maxLength >= LONG_TEXT || schema.format === "textarea";
  const field = {
    control: schema.writeOnly ? passwordInput(start) : isLong ? textArea(schema, start) : textInput(schema, start),
    isEmpty: () => field.control.value === "",
    read: () => {
      refuse(textProblem(schema, field.control.value), field.control);
      return JSON.stringify(field.control.value);
    },
  };
  if (schema.suggest) offerSuggestions(field, schema.suggest);
  else if (!schema.writeOnly && !isLong) growOnLineBreaks(field, schema);
  return field;
}

function textInput(schema, value) {
  return el("input", { type: "text", ...TYPING, value, placeholder: placeholder(schema) });
}

function passwordInput(value) {
  return el("input", { type: "password", ...TYPING, autocomplete: "new-password", value });
}

function textArea(schema, value) {
  const area = el("textarea", { rows: 1, ...TYPING, value, placeholder: placeholder(schema), "data-text": "" });
  const grow = () => { area.rows = Math.min(16, Math.max(3, area.value.split("\n").length)); };
  area.addEventListener("input", grow);
  grow();
  return area;
}

// An input becomes a text area when a line break is entered with Shift+Enter, or when several lines are pasted.
function growOnLineBreaks(field, schema) {
  const input = field.control;
  const insert = (event, text) => {
    event.preventDefault();
    const { value, selectionStart, selectionEnd } = input;
    const area = textArea(schema, `${value.slice(0, selectionStart)}${text}${value.slice(selectionEnd)}`);
    for (const { name, value: held } of input.attributes) if (name === "id" || name.startsWith("aria-")) area.setAttribute(name, held);
    input.replaceWith(area);
    field.control = area;
    area.focus();
    area.setSelectionRange(selectionStart + text.length, selectionStart + text.length);
    area.dispatchEvent(new Event("input", { bubbles: true }));
  };
  input.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && event.shiftKey && !event.isComposing) insert(event, "\n");
  });
  input.addEventListener("paste", (event) => {
    const text = event.clipboardData?.getData("text/plain").replaceAll("\r\n", "\n") ?? "";
    if (text.trim().includes("\n")) insert(event, text);
  });
}

// Asks the server for values while a person types.
function offerSuggestions(field, suggest) {
  const list = el("datalist", { id: newId("suggestions") });
  let timer = 0, latest = 0;
  const ask = async () => {
    latest += 1;
    const number = latest;
    const values = await suggest(field.control.value);
    if (number === latest) replace(list, ...values.slice(0, MAX_SUGGESTIONS).map((value) => el("option", { value })));
  };
  field.control.setAttribute("list", list.id);
  field.control.addEventListener("focus", ask);
  field.control.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(ask, SUGGEST_MILLISECONDS);
  });
  field.beside = list;
}

function dateField(initial) {
  const input = el("input", { type: "date", value: initial ?? "" });
  return { control: input, isEmpty: () => !input.value, read: () => JSON.stringify(input.value) };
}

export function numberField(schema, initial, whole) {
  const start = initial === undefined ? "" : typeof initial === "object" ? JSON.stringify(initial) : String(initial);
  const input = el("input", { type: schema.writeOnly ? "password" : "text", inputmode: whole ? "numeric" : "decimal", ...TYPING, value: start, placeholder: placeholder(schema) });
  return {
    control: input,
    isEmpty: () => input.value.trim() === "",
    read: () => {
      const text = input.value.trim().replace(/^\+/, "");
      refuse((whole ? INTEGER : NUMBER).test(text) ? null : whole ? "Enter an integer, such as 12." : "Enter a number, such as 1.5.", input);
      refuse(numberProblem(schema, text), input);
      return text;
    },
  };
}

// A number or a text. A number whose digits a double changes is sent as a text, which a decimal takes as it is.
export function decimalField(schema, initial) {
  const field = numberField(schema, initial, false);
  const input = field.control;
  input.removeAttribute("inputmode");
  return {
    ...field,
    read: () => {
      const text = input.value.trim();
      const isNumber = NUMBER.test(text);
      refuse(isNumber ? numberProblem(schema, text) : textProblem(schema.text, text), input);
      return isNumber && text !== initial && String(Number(text)) === text ? text : JSON.stringify(text);
    },
  };
}

export function booleanField(initial) {
  const input = el("input", { type: "checkbox", checked: initial === true });
  return { control: input, read: () => String(input.checked), isCheck: true };
}

// Nothing is chosen until a person chooses, unless there is an initial value or only one choice.
export function choiceField(choices, initial) {
  const options = choices.map((one, place) => el("option", { value: String(place) }, one.label));
  const wanted = JSON.stringify(initial);
  const found = choices.length === 1 ? 0 : choices.findIndex((one) => JSON.stringify(one.value) === wanted);
  const select = el("select", {}, found < 0 ? el("option", { value: "" }, "Choose…") : null, ...options);
  select.value = found < 0 ? "" : String(found);
  return {
    control: select,
    isEmpty: () => select.value === "",
    read: () => {
      refuse(select.value === "" ? "Choose a value." : null, select);
      return JSON.stringify(choices[Number(select.value)].value);
    },
  };
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
  const area = el("textarea.code", { rows, ...TYPING, placeholder: hint, value: text });
  return {
    control: area,
    isEmpty: () => area.value.trim() === "",
    read: () => {
      try {
        JSON.parse(area.value);
      } catch (error) {
        throw new FieldError(`This is not valid JSON: ${error.message}`, area);
      }
      return area.value.trim();
    },
  };
}

// Adds a label, a description and a place for errors to the control of a field: {element, read, fail(path, message)}.
export function labelled(field, name, schema, { required, toggle = null }) {
  const id = newId("field");
  const hintId = `${id}-hint`, errorId = `${id}-error`;
  const limits = limitsOf(schema) ? el("span.limits", { id: `${id}-limits` }, limitsOf(schema)) : null;
  const hint = schema.description ? el("p.hint", { id: hintId }, schema.description) : null;
  const error = el("p.error", { id: errorId, hidden: true });
  const title = schema.title && schema.title.toLowerCase() !== name.replaceAll("_", " ").toLowerCase() ? schema.title : null;
  const label = el(field.isGroup ? "span.label" : "label.label", field.isGroup ? { id: `${id}-label` } : { for: id },
    el("bdi", {}, name), required ? el("span.required", { title: "required" }, " *") : null,
    title ? el("span.quiet", {}, ` ${title}`) : null);
  field.control.id = id;
  if (field.isGroup) field.control.setAttribute("aria-labelledby", `${id}-label`);
  field.control.setAttribute("aria-describedby", [hint?.id, limits?.id, errorId].filter(Boolean).join(" "));
  if (required && !field.isCheck && !field.isGroup && field.control.tagName !== "OUTPUT") field.control.setAttribute("aria-required", "true");
  const head = el("div.head", {}, toggle, field.isCheck ? field.control : null, label, limits);
  const revealer = field.control.type === "password" ? revealButton(field.control, name) : null;
  const body = revealer ? el("div.line", {}, field.control, revealer) : field.control;
  const element = el("div.field", {}, head, hint, field.isCheck ? null : body, field.beside ?? null, error);
  const node = {
    element,
    read: () => {
      try {
        refuse(required && field.isEmpty?.() ? "This is required." : null, field.control);
        const text = field.read();
        show(null);
        return text;
      } catch (problem) {
        if (problem instanceof FieldError && problem.input === field.control) show(problem.message);
        throw problem;
      }
    },
    peek: () => (field.isEmpty?.() ? undefined : attempt(field.read)),
    fail: (path, message) => {
      show(path ? `${path}: ${message}` : message);
      return "shown";
    },
  };
  const show = (problem) => {
    error.textContent = problem ?? "";
    error.hidden = problem === null;
    if (problem === null) field.control.removeAttribute("aria-invalid");
    else field.control.setAttribute("aria-invalid", "true");
  };
  element.addEventListener("input", () => { if (!error.hidden) attempt(node.read); });
  return node;
}

function revealButton(input, name) {
  const button = el("button.small", { type: "button", "aria-pressed": "false", "aria-label": `Show ${name}` }, "Show");
  button.addEventListener("click", () => {
    const hidden = input.type === "text";
    input.type = hidden ? "password" : "text";
    button.setAttribute("aria-pressed", String(!hidden));
    button.textContent = hidden ? "Show" : "Hide";
  });
  return button;
}

// Reads a field whose problem is shown by the field itself; undefined if it has one.
export function attempt(read) {
  try {
    return read();
  } catch (problem) {
    if (!(problem instanceof FieldError)) throw problem;
    return undefined;
  }
}

// Reads all fields, so that every problem is shown, then throws the first problem.
export function readAll(reads) {
  let first = null;
  const texts = reads.map((read) => {
    try {
      return read();
    } catch (problem) {
      if (!(problem instanceof FieldError)) throw problem;
      first ??= problem;
      return undefined;
    }
  });
  if (first) throw first;
  return texts;
}
