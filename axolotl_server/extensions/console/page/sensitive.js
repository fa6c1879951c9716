// Copies of arguments without their sensitive parts, which schemas mark as `writeOnly`.

import { own } from "./dom.js";
import { isObject, pointed } from "./schema.js";

const MAX_FORMS = 500;
const NESTED = ["allOf", "anyOf", "oneOf"], CONDITIONAL = ["if", "then", "else", "not"];

// Replaces sensitive parts by `replacement(name)`, or omits them if that is undefined.
export function concealed(value, schema, replacement) {
  return copied(value, [schema], schema, replacement, "arguments");
}

// Puts the sensitive parts of the original back into an edited copy, where it still has their placeholders.
export function restored(edited, hidden, original) {
  if (JSON.stringify(edited) === JSON.stringify(hidden)) return original;
  if (Array.isArray(edited) && Array.isArray(hidden)) return edited.map((one, place) => restored(one, hidden[place], original[place]));
  if (!isObject(edited) || !isObject(hidden)) return edited;
  return Object.fromEntries(Object.entries(edited).map(([key, one]) => [key, restored(one, own(hidden, key), own(original, key))]));
}

// The text in place of a sensitive value.
export function placeholderFor(name) {
  return `<${name}>`;
}

function copied(value, schemas, root, replacement, name) {
  const forms = formsOf(schemas, root);
  if (forms.some((one) => one.writeOnly || one.propertyNames?.writeOnly)) return replacement(name);
  if (Array.isArray(value)) {
    return value.map((one, place) => copied(one, forms.flatMap((form) => itemSchemas(form, place)), root, replacement, name)).filter((one) => one !== undefined);
  }
  if (!isObject(value)) return value;
  const pairs = Object.entries(value).map(([key, one]) => [key, copied(one, forms.flatMap((form) => memberSchemas(form, key)), root, replacement, key)]);
  return Object.fromEntries(pairs.filter(([, one]) => one !== undefined));
}

// All schemas that can describe a value: references are followed, and unions and conditions taken apart. A value with
// too many of them counts as sensitive.
function formsOf(schemas, root) {
  const forms = [], waiting = [...schemas], seen = new Set();
  while (waiting.length && forms.length < MAX_FORMS) {
    const one = waiting.pop();
    if (one === null || typeof one !== "object" || seen.has(one)) continue;
    seen.add(one);
    forms.push(one);
    if (typeof one.$ref === "string") waiting.push(pointed(one.$ref, root));
    for (const key of NESTED) if (Array.isArray(one[key])) waiting.push(...one[key]);
    for (const key of CONDITIONAL) if (one[key]) waiting.push(one[key]);
    waiting.push(...Object.values(one.dependentSchemas ?? {}));
  }
  return waiting.length ? [{ writeOnly: true }] : forms;
}

function itemSchemas({ prefixItems, items, contains }, place) {
  return [prefixItems?.[place] ?? items, contains].filter(Boolean);
}

function memberSchemas({ properties, patternProperties, additionalProperties }, key) {
  const named = own(properties, key);
  return [named, ...Object.values(patternProperties ?? {}), named === undefined ? additionalProperties : undefined].filter(Boolean);
}
