// Checks of entered values against their schema, before they are sent. They return what is wrong, or null.

const MAX_CHECKED_CHARACTERS = 10000;
const ASCII = /^[\x00-\x7f]*$/;
const INTEGER = /^-?[0-9]+$/;

export function textProblem(schema, text) {
  const length = [...text].length;
  const size = sizeProblem(length, schema.minLength, schema.maxLength, "character");
  if (size) return size;
  return schema.pattern === undefined || matches(schema.pattern, text) ? null : `Must match the pattern ${schema.pattern}.`;
}

export function numberProblem(schema, text) {
  const { minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf } = schema;
  if (minimum !== undefined && compare(text, minimum) < 0) return `Must be ${minimum} or more.`;
  if (maximum !== undefined && compare(text, maximum) > 0) return `Must be ${maximum} or less.`;
  if (exclusiveMinimum !== undefined && compare(text, exclusiveMinimum) <= 0) return `Must be more than ${exclusiveMinimum}.`;
  if (exclusiveMaximum !== undefined && compare(text, exclusiveMaximum) >= 0) return `Must be less than ${exclusiveMaximum}.`;
  const isWhole = INTEGER.test(text) && Number.isSafeInteger(multipleOf) && multipleOf > 0;
  if (isWhole && BigInt(text) % BigInt(multipleOf) !== 0n) return `Must be a multiple of ${multipleOf}.`;
  return null;
}

export function itemsProblem(schema, texts) {
  const size = sizeProblem(texts.length, schema.minItems, schema.maxItems, "item");
  if (size) return size;
  return schema.uniqueItems && new Set(texts).size !== texts.length ? "All items must be different." : null;
}

function sizeProblem(size, least, most, noun) {
  const plural = (number) => `${number} ${noun}${number === 1 ? "" : "s"}`;
  if (least !== undefined && size < least) return `Must have at least ${plural(least)}.`;
  if (most !== undefined && size > most) return `Must have at most ${plural(most)}, has ${size}.`;
  return null;
}

function compare(text, bound) {
  const other = JSON.stringify(bound);
  const [a, b] = INTEGER.test(text) && INTEGER.test(other) ? [BigInt(text), BigInt(other)] : [Number(text), Number(other)];
  return a < b ? -1 : a > b ? 1 : 0;
}

// Servers have other dialects of regular expressions, so what could be judged differently counts as a match.
function matches(pattern, text) {
  if (text.length > MAX_CHECKED_CHARACTERS || (!ASCII.test(text) && /\\[dDwWsSbB]/.test(pattern))) return true;
  try {
    return new RegExp(pattern, "u").test(text);
  } catch {
    return true;
  }
}
