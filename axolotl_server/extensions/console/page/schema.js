// Reading of JSON Schemas: references are resolved, and `allOf` is merged.

import { own } from "./dom.js";

const MAX_REFERENCES = 32;

export function resolve(schema, root, seen = 0) {
  if (schema === true || schema === undefined) return {};
  if (schema === false || typeof schema !== "object" || schema === null) return { not: {} };
  if (typeof schema.$ref === "string" && seen < MAX_REFERENCES) {
    const { $ref, ...beside } = schema;
    return { ...resolve(pointed($ref, root), root, seen + 1), ...beside };
  }
  if (Array.isArray(schema.allOf) && seen < MAX_REFERENCES) return merged(schema, root, seen);
  return schema;
}

export function pointed(reference, root) {
  if (!reference.startsWith("#")) return {};
  let place = root;
  for (const part of reference.slice(1).split("/").filter(Boolean)) {
    place = own(place, decodeURIComponent(part).replaceAll("~1", "/").replaceAll("~0", "~"));
  }
  return place ?? {};
}

function merged(schema, root, seen) {
  const { allOf, ...own } = schema;
  let whole = {};
  for (const part of [...allOf, own]) {
    const one = resolve(part, root, seen + 1);
    const properties = { ...whole.properties, ...one.properties };
    const required = [...(whole.required ?? []), ...(one.required ?? [])];
    whole = { ...whole, ...one };
    if (Object.keys(properties).length) whole.properties = properties;
    if (required.length) whole.required = [...new Set(required)];
  }
  return whole;
}

// The values of an enumeration with their labels; null if the schema is not an enumeration.
export function choicesOf(schema) {
  if (Array.isArray(schema.enum)) {
    const names = Array.isArray(schema.enumNames) ? schema.enumNames : [];
    return schema.enum.map((value, place) => ({ value, label: names[place] ?? shown(value) }));
  }
  const pairs = schema.oneOf ?? schema.anyOf;
  if (Array.isArray(pairs) && pairs.length && pairs.every((one) => one && typeof one === "object" && "const" in one)) {
    return pairs.map((one) => ({ value: one.const, label: one.title ?? shown(one.const) }));
  }
  return null;
}

function shown(value) {
  return typeof value === "string" && value !== "" ? value : JSON.stringify(value);
}

// The alternatives of a union; null if there is only one.
export function variantsOf(schema) {
  const listed = schema.anyOf ?? schema.oneOf;
  const { anyOf, oneOf, default: _, discriminator, ...beside } = schema;
  if (Array.isArray(listed) && listed.length > 1) return listed.map((one) => withTitleOnly(beside, one));
  if (Array.isArray(listed) && listed.length === 1) return null;
  if (Array.isArray(schema.type) && schema.type.length > 1) return schema.type.map((type) => ({ ...schema, type }));
  return null;
}

function withTitleOnly(beside, one) {
  const { title, description, examples, ...rest } = beside;
  return typeof one === "object" && one !== null ? { ...rest, ...one } : one;
}

// The schema of a decimal, which is a number or a text with its digits, as one number that keeps the schema of the text; null for others.
export function decimalOf(schema) {
  const { anyOf, ...beside } = schema;
  const [number, text, ...others] = Array.isArray(anyOf) ? anyOf : [];
  const isDecimal = number?.type === "number" && text?.type === "string" && !others.length && !["const", "enum", "format"].some((key) => key in text);
  return isDecimal ? { ...beside, ...number, type: "decimal", text } : null;
}

export function typeOf(schema) {
  if (typeof schema.type === "string") return schema.type;
  if (Array.isArray(schema.type) && schema.type.length === 1) return schema.type[0];
  if (schema.properties) return "object";
  if (schema.items || schema.prefixItems) return "array";
  return null;
}

export function nameOfVariant(schema, root, place) {
  const whole = resolve(schema, root);
  if ("const" in whole) return JSON.stringify(whole.const);
  const tag = Object.entries(whole.properties ?? {}).find(([, value]) => value && "const" in value);
  const type = typeOf(whole);
  if (tag) return String(tag[1].const);
  if (whole.title) return whole.title;
  if (choicesOf(whole)) return "one of a list";
  return type ? (whole.format ? `${type} (${whole.format})` : type) : `variant ${place + 1}`;
}

// The names that a server can use for a variant in the paths of its error messages.
export function aliasesOf(schema, root) {
  const whole = resolve(schema, root);
  const tags = Object.values(whole.properties ?? {}).filter((one) => one && "const" in one).map((one) => String(one.const));
  const pythonic = { string: "str", integer: "int", number: "float", boolean: "bool" }[typeOf(whole)];
  return [whole.title, schema?.$ref?.split("/").at(-1), pythonic, typeOf(whole), ...tags].filter(Boolean);
}

// The first example of a value as text; empty if there is none.
export function exampleOf(schema) {
  const examples = Array.isArray(schema.examples) ? schema.examples : schema.example === undefined ? [] : [schema.example];
  const [first] = examples;
  if (first === undefined || first === null || first === "") return "";
  return typeof first === "string" ? first : JSON.stringify(first);
}

// The limits of a value as text.
export function limitsOf(schema) {
  const words = [schema.format, range(schema),
    "multipleOf" in schema ? `multiple of ${schema.multipleOf}` : "",
    amount(schema.minLength, schema.maxLength, "character"), amount(schema.minItems, schema.maxItems, "item"),
    schema.pattern ? `matches ${schema.pattern}` : "", defaultOf(schema)];
  return words.filter(Boolean).join(", ");
}

function range({ minimum: from, exclusiveMinimum: above, maximum: to, exclusiveMaximum: below }) {
  if (from !== undefined && to !== undefined) return `${from} to ${to}`;
  const low = from !== undefined ? `${from} or more` : above !== undefined ? `above ${above}` : "";
  const high = to !== undefined ? (low ? `at most ${to}` : `up to ${to}`) : below !== undefined ? `below ${below}` : "";
  return [low, high].filter(Boolean).join(", ");
}

function amount(least, most, noun) {
  const plural = (number) => `${number} ${noun}${number === 1 ? "" : "s"}`;
  if (least && most !== undefined) return least === most ? plural(most) : `${least} to ${plural(most)}`;
  if (least) return `at least ${plural(least)}`;
  return most === undefined ? "" : `at most ${plural(most)}`;
}

function defaultOf({ default: value, writeOnly }) {
  if (writeOnly || value === undefined || value === null || value === "" || (Array.isArray(value) && !value.length)) return "";
  return `default ${shown(value)}`;
}

// Tells whether a value matches a schema, judging by types.
export function fits(value, schema, root) {
  const whole = resolve(schema, root);
  if ("const" in whole) return JSON.stringify(value) === JSON.stringify(whole.const);
  const choices = choicesOf(whole);
  if (choices) return choices.some((one) => JSON.stringify(one.value) === JSON.stringify(value));
  const variants = variantsOf(whole);
  if (variants) return variants.some((one) => fits(value, one, root));
  switch (typeOf(whole)) {
    case "null": return value === null;
    case "string": return typeof value === "string";
    case "boolean": return typeof value === "boolean";
    case "integer": return Number.isInteger(value) || isRaw(value);
    case "number": return typeof value === "number" || isRaw(value);
    case "array": return Array.isArray(value);
    case "object": return isObject(value) && isLike(value, whole, root);
    default: return true;
  }
}

function isLike(value, schema, root) {
  const properties = schema.properties ?? {};
  if ((schema.required ?? []).some((name) => !Object.hasOwn(value, name))) return false;
  return Object.entries(properties).every(([name, one]) => !Object.hasOwn(value, name) || fits(value[name], one, root));
}

export function isObject(value) {
  return value !== null && typeof value === "object" && !Array.isArray(value) && !isRaw(value);
}

function isRaw(value) {
  return typeof JSON.isRawJSON === "function" && JSON.isRawJSON(value);
}
