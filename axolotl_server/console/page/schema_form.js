// A form for any JSON Schema; parts without a form are entered as JSON.

import { el, newId, own } from "./dom.js";
import {
  FieldError, booleanField, choiceField, fixedField, labelled, numberField, rawField, severalField, textField,
} from "./fields.js";
import { choicesOf, fits, limitsOf, nameOfVariant, resolve, typeOf, variantsOf } from "./schema.js";

const MAX_DEPTH = 8, MAX_CHOICES = 2000, MAX_FIELDS = 1000;
let fieldsLeft = MAX_FIELDS;

// Makes the form of an object: {element, read() -> JSON text}; read throws FieldError.
export function objectForm(schema, initial = {}) {
  fieldsLeft = MAX_FIELDS;
  const whole = resolve(schema, schema);
  const group = objectGroup(whole, schema, initial, 0);
  if (!group.count) group.element.append(el("p.quiet", {}, "No arguments."));
  return { element: group.element, read: group.read };
}

// One property or item: {element, read() -> JSON text, or undefined if it is omitted}.
function member(name, schema, root, { required, initial, depth }) {
  const whole = required ? resolve(schema, root) : withoutNull(resolve(schema, root), initial, root);
  const start = initial === undefined ? whole.default ?? undefined : initial;
  if (!required && isBoolean(whole)) return optionalBoolean(name, whole, initial);
  const toggle = required ? null : includeBox(name, initial !== undefined);
  const made = inner(whole, root, start, depth);
  const placed = made.field
    ? labelled(made.field, name, whole, { required, toggle })
    : framed(name, whole, { required, toggle, made });
  if (required) return placed;
  placed.element.addEventListener("input", (event) => {
    if (event.target !== toggle) toggle.checked = true;
  });
  return { element: placed.element, read: () => (toggle.checked ? placed.read() : undefined) };
}

function includeBox(name, checked) {
  return el("input.include", { type: "checkbox", checked, "aria-label": `send ${name}`, title: "send this argument or omit it" });
}

// Omitting an argument means the same as null, so the choice between the two is not shown.
function withoutNull(schema, initial, root) {
  const variants = variantsOf(schema);
  if (initial === null || !variants || variants.length !== 2) return schema;
  const others = variants.filter((one) => typeOf(resolve(one, root)) !== "null");
  if (others.length !== 1) return schema;
  const { anyOf, oneOf, ...beside } = schema;
  const only = resolve(others[0], root);
  const { default: given, ...described } = { ...only, ...beside, type: only.type ?? schema.type };
  if (Array.isArray(described.type)) described.type = described.type.find((type) => type !== "null");
  return given === null || given === undefined ? described : { ...described, default: given };
}

function isBoolean(schema) {
  return typeOf(schema) === "boolean" && !choicesOf(schema) && !("const" in schema);
}

function optionalBoolean(name, schema, initial) {
  const choices = [{ value: undefined, label: "omitted" }, { value: true, label: "true" }, { value: false, label: "false" }];
  const field = choiceField(choices, initial);
  return labelled({ control: field.control, read: () => field.read() }, name, schema, { required: false });
}

// Returns {field}, a control for one value, or {element, read} for a value with parts.
function inner(schema, root, initial, depth) {
  if ("const" in schema) return { field: fixedField(schema.const) };
  fieldsLeft -= 1;
  const choices = choicesOf(schema);
  if (depth >= MAX_DEPTH || fieldsLeft < 0 || choices?.length > MAX_CHOICES) return { field: rawField(initial) };
  if (choices && choices.length) return { field: choiceField(choices, initial) };
  const variants = variantsOf(schema);
  if (variants) return unionGroup(variants, root, initial, depth);
  switch (typeOf(schema)) {
    case "string": return { field: textField(schema, typeof initial === "string" ? initial : undefined) };
    case "integer": return { field: numberField(schema, initial, true) };
    case "number": return { field: numberField(schema, initial, false) };
    case "boolean": return { field: booleanField(initial) };
    case "null": return { field: fixedField(null) };
    case "array": return arrayInner(schema, root, initial, depth);
    case "object": return objectGroup(schema, root, initial, depth);
    default: return { field: rawField(initial) };
  }
}

// A frame around a value with parts.
function framed(name, schema, { required, toggle, made }) {
  const error = el("p.error", { hidden: true });
  const body = el("div.parts", {}, made.element);
  const words = [schema.description, limitsOf(schema)].filter(Boolean).join(" – ");
  const legend = el("legend", {}, toggle, el("bdi", {}, name), required ? el("span.required", { title: "required" }, " *") : null);
  const element = el("fieldset", {}, legend, words ? el("p.hint", {}, words) : null, body, error);
  if (toggle) {
    const show = () => { body.hidden = !toggle.checked; };
    toggle.addEventListener("change", show);
    show();
  }
  return { element, read: () => made.read() };
}

function objectGroup(schema, root, initial, depth) {
  const given = initial !== null && typeof initial === "object" && !Array.isArray(initial) ? initial : {};
  const required = new Set(schema.required ?? []);
  const properties = Object.entries(schema.properties ?? {});
  const ordered = [...properties.filter(([name]) => required.has(name)), ...properties.filter(([name]) => !required.has(name))];
  const element = el("div.members");
  const members = ordered.map(([name, one]) => {
    const options = { required: required.has(name), initial: own(given, name), depth: depth + 1 };
    return [name, lazy(element, name, () => member(name, one, root, options), one, root, options)];
  });
  const open = schema.additionalProperties;
  const known = new Set(properties.map(([name]) => name));
  const others = Object.entries(given).filter(([name]) => !known.has(name));
  const extra = open === false || (open === undefined && properties.length) ? null
    : extraMembers(element, open === true || open === undefined ? {} : open, root, others, depth);
  const read = () => {
    const texts = members.map(([name, field]) => [name, field.read()]).filter(([, text]) => text !== undefined);
    return `{${[...texts, ...(extra ? extra.read() : [])].map(([name, text]) => `${JSON.stringify(name)}:${text}`).join(",")}}`;
  };
  return { element, read, count: members.length + (extra ? 1 : 0) };
}

// Optional parts that refer to other schemas are made on demand, so that recursive schemas end.
function lazy(parent, name, make, schema, root, { required, initial }) {
  const whole = resolve(schema, root);
  const deep = !required && initial === undefined && (variantsOf(whole) || ["object", "array"].includes(typeOf(whole)));
  if (!deep || !JSON.stringify(whole).includes('"$ref"')) {
    const made = make();
    parent.append(made.element);
    return made;
  }
  let made = null;
  const button = el("button", { type: "button" }, "Add ", el("bdi", {}, name));
  const place = el("div.field", {}, button);
  button.addEventListener("click", () => {
    fieldsLeft = MAX_FIELDS;
    made = make();
    place.replaceWith(made.element);
    const box = made.element.querySelector("input.include");
    if (box) {
      box.checked = true;
      box.dispatchEvent(new Event("change"));
      box.focus();
    }
  });
  parent.append(place);
  return { read: () => made?.read() };
}

function extraMembers(parent, schema, root, initial, depth) {
  const rows = new Map();
  const list = el("div.rows");
  const add = (key = "", value = undefined) => {
    const name = el("input", { type: "text", value: key, "aria-label": "name", placeholder: "name", autocomplete: "off" });
    const field = member("value", schema, root, { required: true, initial: value, depth: depth + 1 });
    const remove = el("button", { type: "button", "aria-label": "remove this member" }, "Remove");
    const row = el("div.row", {}, name, field.element, remove);
    rows.set(row, { name, field });
    remove.addEventListener("click", () => {
      rows.delete(row);
      row.remove();
      button.focus();
    });
    list.append(row);
    return name;
  };
  const button = el("button", { type: "button", onclick: () => add().focus() }, "Add a member");
  initial.forEach(([key, value]) => add(key, value));
  parent.append(list, button);
  return {
    read: () => [...rows.values()].map(({ name, field }) => {
      if (!name.value) throw new FieldError("enter a name", name);
      return [name.value, field.read()];
    }),
  };
}

function arrayInner(schema, root, initial, depth) {
  const items = resolve(schema.items ?? {}, root);
  const choices = choicesOf(items);
  if (choices && choices.length && !schema.prefixItems) return { field: severalField(choices, initial) };
  const given = Array.isArray(initial) ? initial : [];
  const fixed = (schema.prefixItems ?? []).map((one, place) =>
    member(`${place + 1}`, one, root, { required: true, initial: given[place], depth: depth + 1 }));
  const list = el("div.rows", {}, ...fixed.map((one) => one.element));
  if (schema.prefixItems && schema.items === undefined || schema.items === false) {
    return { element: list, read: () => `[${fixed.map((one) => one.read()).join(",")}]` };
  }
  const rows = new Map();
  const renumber = () => [...rows.keys()].forEach((row, place) => {
    row.querySelector("bdi").textContent = `${fixed.length + place + 1}`;
  });
  const add = (value) => {
    const field = member("0", schema.items ?? {}, root, { required: true, initial: value, depth: depth + 1 });
    const remove = el("button", { type: "button", "aria-label": "remove this item" }, "Remove");
    const row = el("div.row", {}, field.element, remove);
    rows.set(row, field);
    remove.addEventListener("click", () => {
      rows.delete(row);
      row.remove();
      renumber();
      button.focus();
    });
    list.append(row);
    renumber();
    return row;
  };
  const button = el("button", { type: "button" }, "Add an item");
  button.addEventListener("click", () => {
    add(undefined).querySelector("textarea, input, select, button")?.focus();
    button.dispatchEvent(new Event("input", { bubbles: true }));
  });
  given.slice(fixed.length).forEach((value) => add(value));
  for (let count = given.length; count < Math.min(schema.minItems ?? 0, 20); count += 1) add(undefined);
  const element = el("div", {}, list, button);
  return { element, read: () => `[${[...fixed, ...rows.values()].map((one) => one.read()).join(",")}]` };
}

function unionGroup(variants, root, initial, depth) {
  const names = variants.map((one, place) => nameOfVariant(one, root, place));
  const id = newId("variant");
  const select = el("select", { id }, ...names.map((name, place) => el("option", { value: String(place) }, name)));
  const found = initial === undefined ? -1 : variants.findIndex((one) => fits(initial, one, root));
  select.value = String(Math.max(0, found));
  const place = el("div.parts");
  let chosen = null;
  const show = (start) => {
    const whole = resolve(variants[Number(select.value)], root);
    const made = inner(whole, root, start, depth + 1);
    chosen = made.field ? labelled(made.field, names[Number(select.value)], whole, { required: true }) : made;
    place.replaceChildren(chosen.element);
  };
  select.addEventListener("change", () => show(undefined));
  show(found < 0 ? undefined : initial);
  const element = el("div", {}, el("div.head", {}, el("label.label", { for: id }, "Kind"), select), place);
  return { element, read: () => chosen.read() };
}
