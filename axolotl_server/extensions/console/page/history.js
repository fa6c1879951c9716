// The arguments of earlier calls, kept until the tab is closed, without sensitive values.

import { parse } from "./json.js";
import { concealed } from "./sensitive.js";

const KEY = "axolotl-arguments";
const MAX_ENTRIES = 8, MAX_FEATURES = 40, MAX_CHARACTERS = 4096;

// Returns the JSON texts of a feature, newest first.
export function remembered(key) {
  return load().get(key) ?? [];
}

export function remember(key, text, schema) {
  const kept = JSON.stringify(concealed(parse(text), schema, () => undefined));
  if (kept === undefined || kept === "{}" || kept.length > MAX_CHARACTERS) return;
  const all = load();
  const entries = [kept, ...(all.get(key) ?? []).filter((one) => one !== kept)].slice(0, MAX_ENTRIES);
  all.delete(key);
  all.set(key, entries);
  save(new Map([...all].slice(-MAX_FEATURES)));
}

export function forgetAll() {
  save(new Map());
}

function load() {
  try {
    return new Map(JSON.parse(sessionStorage.getItem(KEY) ?? "[]"));
  } catch {
    return new Map();
  }
}

function save(all) {
  try {
    sessionStorage.setItem(KEY, JSON.stringify([...all]));
  } catch {
    // The browser stores nothing, or not so much.
  }
}
