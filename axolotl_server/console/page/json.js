// JSON that keeps its numbers: what a double cannot hold is shown as it was written.

const exact = typeof JSON.rawJSON === "function";

export function parse(text) {
  if (!exact) return JSON.parse(text);
  return JSON.parse(text, (key, value, context) => {
    if (typeof value !== "number" || context === undefined) return value;
    return String(value) === context.source || isSame(value, context.source) ? value : JSON.rawJSON(context.source);
  });
}

function isSame(value, source) {
  return Number.isSafeInteger(value) || (!Number.isInteger(value) && source.length < 17);
}

export function pretty(value) {
  return JSON.stringify(value, null, 2);
}

// Writes the text of a JSON value again, over several lines.
export function prettyText(text) {
  return pretty(parse(text));
}

// The same for values that mean the same, whatever the order of their members.
export function canonical(text) {
  return JSON.stringify(sorted(parse(text)));
}

function sorted(value) {
  if (Array.isArray(value)) return value.map(sorted);
  if (value === null || typeof value !== "object" || (exact && JSON.isRawJSON(value))) return value;
  return Object.fromEntries(Object.keys(value).sort().map((key) => [key, sorted(value[key])]));
}
