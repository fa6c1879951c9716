// JSON with exact numbers: a number that a double cannot represent keeps its text.

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

// Formats JSON text.
export function prettyText(text) {
  return pretty(parse(text));
}

// Returns the same text for equal values, whatever the order of their members.
export function canonical(text) {
  return JSON.stringify(sorted(parse(text)));
}

function sorted(value) {
  if (Array.isArray(value)) return value.map(sorted);
  if (value === null || typeof value !== "object" || (exact && JSON.isRawJSON(value))) return value;
  return Object.fromEntries(Object.keys(value).sort().map((key) => [key, sorted(value[key])]));
}
