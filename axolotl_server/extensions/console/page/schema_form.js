// A form for any JSON Schema; parts without a form are entered as JSON. Every part of a form is a node:
// {element, read() -> JSON text, fail(path, message) -> "shown", "ignored" or undefined if there is no place for it}.

import { itemsProblem } from "./checks.js";
import { el, newId, own } from "./dom.js";
import {
  FieldError, booleanField, choiceField, decimalField, fixedField, labelled, numberField, rawField, readAll, refuse, severalField, textField,
} from "./fields.js";
import { matchOf } from "./problems.js";
import { aliasesOf, choicesOf, decimalOf, fits, limitsOf, nameOfVariant, resolve, typeOf, variantsOf } from "./schema.js";

const MAX_DEPTH = 8, MAX_CHOICES = 2000, MAX_FIELDS = 1000;
let fieldsLeft = MAX_FIELDS;

// Makes the form of an object; read throws FieldError, and peek returns the texts of single values by name, without marking problems.
export function objectForm(schema, initial = {}) {
  fieldsLeft = MAX_FIELDS;
  const whole = resolve(schema, schema);
  const group = objectGroup(whole, schema, initial, 0);
  if (!group.count) group.element.append(el("p.quiet", {}, "No arguments."));
  return group;
}

// One property or item; read returns undefined if it is omitted.
function member(name, schema, root, { required, initial, depth }) {
  const resolved = required ? resolve(schema, root) : withoutNull(resolve(schema, root), initial, root);
  const whole = decimalOf(resolved) ?? resolved;
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
  return { ...placed, read: () => (toggle.checked ? placed.read() : undefined) };
}

function includeBox(name, checked) {
  return el("input.include", { type: "checkbox", checked, "aria-label": `send ${name}`, title: "send this argument or omit it" });
}

// Omitting an argument means the same as null, so the choice between the two is not shown.
function withoutNull(schema, initial, root) {
  const variants = variantsOf(schema);
  if (initial === null || !variants) return schema;
  const others = variants.filter((one) => typeOf(resolve(one, root)) !== "null");
  if (others.length === variants.length) return schema;
  const { anyOf, oneOf, ...beside } = schema;
  if (others.length > 1) return { ...beside, anyOf: others };
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
  return labelled(choiceField(choices, initial), name, schema, { required: false });
}

// Returns {field}, a control for one value, or a node for a value with parts.
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
    case "decimal": return { field: decimalField(schema, initial) };
    case "boolean": return { field: booleanField(initial) };
    case "null": return { field: fixedField(null) };
    case "array": return arrayInner(schema, root, initial, depth);
    case "object": return objectGroup(schema, root, initial, depth);
    default: return { field: rawField(initial) };
  }
}

// A frame around a value with parts.
function framed(name, schema, { required, toggle, made }) {
  const id = newId("part");
  const error = el("p.error", { id, hidden: true });
  const body = el("div.parts", {}, made.element);
  const words = [schema.description, limitsOf(schema)].filter(Boolean).join(" · ");
  const legend = el("legend", {}, toggle, el("bdi", {}, name), required ? el("span.required", { title: "required" }, " *") : null);
  const element = el("fieldset", { "aria-describedby": id }, legend, words ? el("p.hint", {}, words) : null, body, error);
  if (toggle) {
    const show = () => { body.hidden = !toggle.checked; };
    toggle.addEventListener("change", show);
    show();
  }
  const show = (problem) => {
    error.textContent = problem ?? "";
    error.hidden = problem === null;
    element.classList.toggle("invalid", problem !== null);
  };
  const read = () => {
    show(null);
    try {
      return made.read();
    } catch (problem) {
      if (problem instanceof FieldError && problem.input === made.element) show(problem.message);
      throw problem;
    }
  };
  const fail = (path, message) => {
    const placed = path ? made.fail(path, message) : undefined;
    if (placed) return placed;
    show(path ? `${path}: ${message}` : message);
    return "shown";
  };
  element.addEventListener("input", () => { if (!error.hidden) show(null); });
  return { element, read, fail };
}

// In a variant of a union, a constant tells the variants apart: it is always sent, and the choice of the variant shows it.
function objectGroup(schema, root, initial, depth, isTag = false) {
  const given = initial !== null && typeof initial === "object" && !Array.isArray(initial) ? initial : {};
  const required = new Set(schema.required ?? []);
  const properties = Object.entries(schema.properties ?? {}).map(([name, one]) => [name, schema.writeOnly ? { ...one, writeOnly: true } : one]);
  const ordered = [...properties.filter(([name]) => required.has(name)), ...properties.filter(([name]) => !required.has(name))];
  const element = el("div.members");
  const members = ordered.map(([name, one]) => {
    const options = { required: required.has(name), initial: own(given, name), depth: depth + 1 };
    if (isTag && "const" in resolve(one, root)) return [name, { read: () => JSON.stringify(resolve(one, root).const), fail: () => undefined }];
    return [name, lazy(element, name, () => member(name, one, root, options), one, root, options)];
  });
  const open = schema.additionalProperties;
  const known = new Set(properties.map(([name]) => name));
  const others = Object.entries(given).filter(([name]) => !known.has(name));
  const extra = open === false || (open === undefined && properties.length) ? null
    : extraMembers(element, open === true || open === undefined ? {} : open, root, others, depth);
  const read = () => {
    const texts = readAll(members.map(([, field]) => field.read)).map((text, place) => [members[place][0], text]).filter(([, text]) => text !== undefined);
    return `{${[...texts, ...(extra ? extra.read() : [])].map(([name, text]) => `${JSON.stringify(name)}:${text}`).join(",")}}`;
  };
  const peek = () => Object.fromEntries(members.map(([name, field]) => [name, field.peek?.()]).filter(([, text]) => text !== undefined));
  return { element, read, peek, fail: placing(() => [...members, ...(extra ? extra.nodes() : [])]), count: members.length + (extra ? 1 : 0) };
}

// Shows a message at the node with the longest name that its path begins with.
function placing(nodes) {
  return (path, message) => {
    const found = nodes().filter(([name]) => matchOf(path, name) !== null).sort(([a], [b]) => b.length - a.length);
    return found.length ? found[0][1].fail(matchOf(path, found[0][0]), message) : undefined;
  };
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
  return { read: () => made?.read(), fail: (path, message) => made?.fail(path, message) };
}

// A row with a button that removes it; returns the row and the function that removes it.
function removableRow(label, onRemove, ...children) {
  const remove = el("button.small", { type: "button", "aria-label": label }, "Remove");
  const row = el("div.row", {}, ...children, el("div.remove", {}, remove));
  remove.addEventListener("click", () => {
    row.remove();
    onRemove(row);
  });
  return row;
}

function extraMembers(parent, schema, root, initial, depth) {
  const rows = new Map();
  const list = el("div.rows");
  const add = (key = "", value = undefined) => {
    const name = el("input", { type: "text", value: key, "aria-label": "name", placeholder: "name", autocomplete: "off" });
    const field = member("value", schema, root, { required: true, initial: value, depth: depth + 1 });
    const row = removableRow("remove this member", (gone) => {
      rows.delete(gone);
      button.focus();
    }, name, field.element);
    rows.set(row, { name, field });
    list.append(row);
    return name;
  };
  const button = el("button.small", { type: "button", onclick: () => add().focus() }, "Add a member");
  initial.forEach(([key, value]) => add(key, value));
  parent.append(list, button);
  return {
    nodes: () => [...rows.values()].map(({ name, field }) => [name.value, field]),
    read: () => readAll([...rows.values()].map(({ name, field }) => () => {
      refuse(name.value ? null : "Enter a name.", name);
      return [name.value, field.read()];
    })),
  };
}

function arrayInner(schema, root, initial, depth) {
  const described = schema.writeOnly ? { ...resolve(schema.items ?? {}, root), writeOnly: true } : schema.items;
  const items = resolve(described ?? {}, root);
  const choices = choicesOf(items);
  if (choices && choices.length && !schema.prefixItems) return { field: severalField(choices, initial) };
  const given = Array.isArray(initial) ? initial : [];
  const fixed = (schema.prefixItems ?? []).map((one, place) =>
    member(`${place + 1}`, one, root, { required: true, initial: given[place], depth: depth + 1 }));
  const list = el("div.rows", {}, ...fixed.map((one) => one.element));
  const rows = new Map();
  const nodes = () => [...fixed, ...rows.values()];
  const node = {
    element: list,
    read: () => {
      const texts = readAll(nodes().map((one) => one.read));
      refuse(itemsProblem(schema, texts), node.element);
      return `[${texts.join(",")}]`;
    },
    fail: (path, message) => {
      const [, place, rest] = /^\[(\d+)\]\.?(.*)$/s.exec(path) ?? [];
      return nodes()[place]?.fail(rest, message);
    },
  };
  if (schema.prefixItems && schema.items === undefined || schema.items === false) return node;
  const renumber = () => [...rows.keys()].forEach((row, place) => {
    row.querySelector("bdi").textContent = `${fixed.length + place + 1}`;
  });
  const add = (value) => {
    const field = member("0", described ?? {}, root, { required: true, initial: value, depth: depth + 1 });
    const row = removableRow("remove this item", (gone) => {
      rows.delete(gone);
      renumber();
      button.focus();
    }, field.element);
    rows.set(row, field);
    list.append(row);
    renumber();
    return row;
  };
  const button = el("button.small", { type: "button" }, "Add an item");
  button.addEventListener("click", () => {
    add(undefined).querySelector("textarea, input, select, button")?.focus();
    button.dispatchEvent(new Event("input", { bubbles: true }));
  });
  given.slice(fixed.length).forEach((value) => add(value));
  for (let count = given.length; count < Math.min(schema.minItems ?? 0, 20); count += 1) add(undefined);
  node.element = el("div", {}, list, button);
  return node;
}

function unionGroup(variants, root, initial, depth) {
  const names = variants.map((one, place) => nameOfVariant(one, root, place));
  const aliases = variants.map((one) => aliasesOf(one, root));
  const id = newId("variant");
  const select = el("select", { id }, ...names.map((name, place) => el("option", { value: String(place) }, name)));
  const found = initial === undefined ? -1 : variants.findIndex((one) => fits(initial, one, root));
  select.value = String(Math.max(0, found));
  const place = el("div.parts");
  let chosen = null;
  const show = (start) => {
    const whole = resolve(variants[Number(select.value)], root);
    const isGroup = typeOf(whole) === "object" && !variantsOf(whole) && depth + 1 < MAX_DEPTH;
    const made = isGroup ? objectGroup(whole, root, start, depth + 1, true) : inner(whole, root, start, depth + 1);
    chosen = made.field ? labelled(made.field, names[Number(select.value)], whole, { required: true }) : made;
    place.replaceChildren(chosen.element);
  };
  select.addEventListener("change", () => show(undefined));
  show(found < 0 ? undefined : initial);
  const element = el("div", {}, el("div.head", {}, el("label.label", { for: id }, "Kind"), select), place);
  // A server reports the problems of every variant; only those of the chosen one are of interest.
  const fail = (path, message) => {
    const rest = aliases.map((ones) => ones.map((one) => matchOf(path, one)).find((one) => one !== null && one !== undefined));
    const number = Number(select.value);
    if (rest[number] !== undefined) return chosen.fail(rest[number], message) ?? undefined;
    return rest.some((one) => one !== undefined) ? "ignored" : chosen.fail(path, message);
  };
  return { element, read: () => chosen.read(), fail };
}
