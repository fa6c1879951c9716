// The calls of all clients: a line per call, with details on demand, a filter and an export.

import { copyLine } from "./copying.js";
import { download, el, facts, find, given } from "./dom.js";
import { bytes, clockTime, count, milliseconds } from "./units.js";

const MAX_ROWS = 200;
const FEATURE_METHODS = new Set(["tools/call", "prompts/get", "resources/read"]);
const QUIET_KINDS = new Set(["completion"]);

export class Calls {
  // `featureOf(key)` returns a feature, `onOpen(key, text)` opens it and fills in arguments, `server` is for copies.
  constructor({ featureOf, onOpen, server }) {
    this.featureOf = featureOf;
    this.onOpen = onOpen;
    this.server = server;
    this.rows = new Map();
    this.missed = 0;
    this.body = find("#calls tbody");
    this.all = find("#all-requests");
    this.filter = find("#call-filter");
    this.all.addEventListener("change", () => this.showMatches());
    this.filter.addEventListener("input", () => this.showMatches());
    find("#clear-calls").addEventListener("click", () => this.clear());
    find("#export-calls").addEventListener("click", () => this.export());
  }

  // Whether a call is known to have ended.
  hasEnded(key) {
    return this.rows.get(key)?.record.outcome !== undefined;
  }

  put(key, record) {
    const before = this.rows.get(key);
    const made = this.row(record, before?.isOpen);
    if (before) {
      const hadFocus = before.line.contains(document.activeElement);
      before.details?.remove();
      before.line.replaceWith(made.line);
      if (hadFocus) made.line.querySelector("button").focus();
    } else {
      this.body.prepend(made.line);
    }
    this.rows.set(key, made);
    if (made.isOpen) this.open(made);
    made.line.hidden = !this.matches(made);
  }

  // After a restart of the server, it is unknown how calls ended.
  endRunning() {
    for (const [key, { record }] of this.rows) {
      if (record.outcome === undefined) this.put(key, { ...record, outcome: "unknown", reason: "the server was restarted" });
    }
  }

  noteMissed(missed) {
    this.missed += missed;
    this.trim();
    this.showNote();
  }

  trim() {
    for (const [key, row] of this.rows) {
      if (this.rows.size <= MAX_ROWS) return;
      row.details?.remove();
      row.line.remove();
      this.rows.delete(key);
    }
  }

  clear() {
    this.rows.clear();
    this.body.replaceChildren();
    this.missed = 0;
    this.showNote();
  }

  matches({ words, isOther }) {
    const wanted = this.filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    return (this.all.checked || !isOther) && wanted.every((word) => words.includes(word));
  }

  showMatches() {
    for (const row of this.rows.values()) {
      row.line.hidden = !this.matches(row);
      if (row.details) row.details.hidden = row.line.hidden;
    }
    this.showNote();
  }

  showNote() {
    const shown = [...this.rows.values()].filter(({ line }) => !line.hidden).length;
    const missed = this.missed ? `${count(this.missed, "call")} arrived too fast to be listed.` : "";
    const none = shown ? "" : this.filter.value ? "No call matches the filter." : "No calls yet.";
    find("#calls-note").textContent = [missed, none].filter(Boolean).join(" ");
  }

  // Saves the calls that are shown, one JSON object per line, oldest first.
  export() {
    const records = [...this.rows.values()].filter(({ line }) => !line.hidden).map(({ record }) => record);
    const lines = records.map((record) => `${JSON.stringify({ time: new Date(record.began * 1000).toISOString(), ...record })}\n`);
    download("calls.jsonl", lines.join(""), "application/jsonl");
  }

  row(record, isOpen = false) {
    const { kind, name, method, client, subject, outcome, reason, seconds, reference } = record;
    const when = new Date(record.began * 1000);
    const isOther = QUIET_KINDS.has(kind) || (!kind && !FEATURE_METHODS.has(method));
    const shown = (outcome ?? "running").replaceAll("_", " ");
    const made = { record, isOpen, isOther, details: null };
    made.words = [name, method, client, subject, shown, reason, reference].filter(Boolean).join(" ").toLowerCase();
    const button = el("button.link", { type: "button", "aria-expanded": String(isOpen), title: "show details", onclick: () => this.toggle(made) }, given(name ?? method));
    made.line = el("tr", { "data-kind": isOther ? "other" : kind ?? "missing" },
      el("td.time", { title: when.toISOString() }, clockTime(when)),
      el("td.what", {}, button),
      el("td", {}, el("span.outcome", { "data-outcome": outcome ?? "running" }, shown)),
      el("td.who", {}, el("span", {}, given([client, subject === "anonymous" ? null : subject].filter(Boolean).join(", ")))),
      el("td.number", {}, milliseconds(seconds)));
    return made;
  }

  toggle(row) {
    row.isOpen = !row.isOpen;
    row.line.querySelector("button").setAttribute("aria-expanded", String(row.isOpen));
    if (row.isOpen) this.open(row);
    else row.details?.remove();
  }

  open(row) {
    const { record } = row;
    const { arguments: sent, kind, name } = record;
    const key = `${kind} ${name}`;
    const feature = kind ? this.featureOf(key) : undefined;
    const text = sent === undefined || sent === null ? null : JSON.stringify(sent);
    const actions = el("div.line", {},
      feature ? el("button.small", { type: "button", onclick: () => this.onOpen(key, null) }, "Open ", given(name)) : null,
      feature && text ? el("button.small", { type: "button", onclick: () => this.onOpen(key, text) }, "Use these arguments") : null);
    row.details = el("tr.details", {}, el("td", { colspan: 5 }, facts([
      ["method", record.method], ["revision", record.revision], ["client", record.client],
      ["principal", `${record.subject}${record.tenant ? ` of ${record.tenant}` : ""}`],
      ["reason", record.reason], ["rule", record.rule], ["waited", milliseconds(record.queued_seconds)],
      ["result", record.result_bytes === undefined ? null : bytes(record.result_bytes)],
      ["reference", record.reference ? el("code", {}, record.reference) : null],
      ["arguments", text ? el("code", {}, text) : null],
    ]), actions, feature && text ? copyLine(feature, this.server, () => text) : null));
    row.details.hidden = !this.matches(row);
    row.line.after(row.details);
  }
}
