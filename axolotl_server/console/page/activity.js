// The activity of all clients: calls, latencies and sessions.

import { el, facts, given, milliseconds, replace } from "./dom.js";
import { inWords, sparkline } from "./charts.js";

const MAX_ROWS = 200, MAX_LATENCIES = 200, MAX_FEATURES = 100;
const FEATURE_METHODS = new Set(["tools/call", "prompts/get", "resources/read"]);
const SUCCESSFUL = new Set(["ok", "input_required"]);

export class Activity {
  constructor({ onChoose, onLatency }) {
    this.onChoose = onChoose;
    this.onLatency = onLatency;
    this.rows = new Map();
    this.latencies = new Map();
    this.lines = new Map();
    this.clients = new Map();
    this.sessions = [];
    this.instanceId = "";
    this.missed = 0;
    this.body = document.querySelector("#calls tbody");
    this.all = document.querySelector("#all-requests");
    this.all.addEventListener("change", () => this.body.closest("table").classList.toggle("all", this.all.checked));
    document.querySelector("#clear-calls").addEventListener("click", () => this.clear());
  }

  // A restarted server numbers its calls from one again, so keys contain the ID of the instance.
  begin(instanceId) {
    if (instanceId !== this.instanceId) this.endRunning();
    this.instanceId = instanceId;
  }

  endRunning() {
    for (const [key, row] of this.rows) {
      if (row.record.outcome === undefined) this.put(key, { ...row.record, outcome: "unknown", reason: "the server was restarted" });
    }
  }

  add(records, missed = 0) {
    this.missed += missed;
    const touched = new Set();
    for (const record of records) {
      const key = `${this.instanceId}:${record.number}`;
      const known = this.rows.get(key)?.record;
      if (known?.outcome !== undefined) continue;
      this.put(key, record);
      this.noteClient(record);
      if (record.outcome !== undefined && record.kind) touched.add(this.noteLatency(record));
    }
    this.trim();
    document.querySelector("#calls-note").textContent = this.missed ? `${this.missed} calls arrived too fast to be listed.` : "";
    if (touched.size) {
      this.showLatencies(touched);
      touched.forEach((key) => this.onLatency(key));
    }
    this.showSessions();
  }

  put(key, record) {
    const element = row(record, this.onChoose);
    const before = this.rows.get(key);
    if (before) {
      const hadFocus = before.element.contains(document.activeElement);
      before.element.replaceWith(element);
      if (hadFocus) element.querySelector("button")?.focus();
    } else {
      this.body.prepend(element);
    }
    this.rows.set(key, { record, element });
  }

  trim() {
    for (const [key, { element }] of this.rows) {
      if (this.rows.size <= MAX_ROWS) return;
      element.remove();
      this.rows.delete(key);
    }
  }

  clear() {
    this.rows.clear();
    this.body.replaceChildren();
    this.missed = 0;
    document.querySelector("#calls-note").textContent = "";
  }

  noteLatency(record) {
    const key = `${record.kind} ${record.name}`;
    const known = this.latencies.get(key) ?? [];
    known.push({ seconds: record.seconds, failed: !SUCCESSFUL.has(record.outcome) });
    if (known.length > MAX_LATENCIES) known.shift();
    this.latencies.set(key, known);
    if (this.latencies.size > MAX_FEATURES) this.forget(this.latencies.keys().next().value);
    return key;
  }

  forget(key) {
    this.latencies.delete(key);
    this.lines.get(key)?.element.remove();
    this.lines.delete(key);
  }

  latenciesOf(key) {
    return this.latencies.get(key) ?? [];
  }

  // Lines stay where they are, so that the focus is not lost.
  showLatencies(touched) {
    const place = document.querySelector("#latencies");
    place.querySelector(".quiet:only-child")?.remove();
    for (const key of touched) {
      const known = this.latencies.get(key);
      const line = this.lines.get(key) ?? this.addLine(place, key);
      replace(line.chart, sparkline(known));
      line.words.textContent = inWords(known);
    }
  }

  addLine(place, key) {
    const [kind] = key.split(" ", 1);
    const line = { chart: el("span"), words: el("span.quiet") };
    line.element = el("li.latency-row", {}, chooser(kind, key.slice(kind.length + 1), this.onChoose), line.chart, line.words);
    this.lines.set(key, line);
    place.append(line.element);
    return line;
  }

  noteClient(record) {
    const name = record.client ?? "unnamed client";
    const key = `${name} ${record.revision} ${record.subject}`;
    const known = this.clients.get(key);
    this.clients.delete(key);
    this.clients.set(key, { name, record, count: (known?.count ?? 0) + (record.outcome === undefined ? 0 : 1) });
    if (this.clients.size > 50) this.clients.delete(this.clients.keys().next().value);
  }

  showSessions(sessions = this.sessions) {
    this.sessions = sessions;
    const held = sessions.map((one) => el("li", {},
      given(one.client ?? "unnamed client"), el("span.quiet", {},
        ` session ${one.id}, ${one.revision ?? "no handshake yet"}, ${one.subject}, ${one.running} running, ${one.in_use ? "in use" : `idle ${Math.round(one.idle_seconds)} s`}`)));
    const seen = [...this.clients.values()].reverse().slice(0, 10).map(({ name, record, count }) => el("li", {},
      given(name), el("span.quiet", {}, ` ${record.revision}, ${record.subject}${record.tenant ? ` of ${record.tenant}` : ""}, ${count} requests`)));
    replace(document.querySelector("#sessions"),
      el("li.group", {}, `${sessions.length} ${sessions.length === 1 ? "session" : "sessions"}`), ...held,
      el("li.group", {}, "Clients seen"), ...(seen.length ? seen : [el("li.quiet", {}, "None.")]));
  }

  showServer(state) {
    const { limits } = state;
    replace(document.querySelector("#limits"), ...facts([
      ["running", `${state.running} of ${limits.max_inflight}`],
      ["abandoned", state.zombies || null],
      ["concurrency", limits.max_concurrency ?? "unlimited"],
      ["threads", limits.threads],
      ["max. message size", `${limits.max_message_bytes} bytes`],
      ["drain timeout", `${limits.drain_seconds} s`],
    ]).childNodes);
    this.showSessions(state.sessions);
  }
}

function chooser(kind, name, onChoose) {
  return el("button.link", { type: "button", onclick: () => onChoose(`${kind} ${name}`) }, given(name));
}

function row(record, onChoose) {
  const { kind, name, method, client, subject, outcome, reason, rule, seconds, arguments: sent, reference } = record;
  const when = new Date(record.began * 1000);
  const words = [client, subject === "anonymous" ? null : subject, reference ? `reference ${reference}` : null].filter(Boolean);
  const what = kind && name ? chooser(kind, name, onChoose) : el("span", {}, method, name ? " " : "", name ? given(name) : null);
  return el("tr", { "data-kind": kind ?? (FEATURE_METHODS.has(method) ? "missing" : "other") },
    el("td.time", { title: when.toISOString() }, when.toLocaleTimeString([], { hour12: false })),
    el("td", {}, what, words.length ? el("div.quiet", {}, words.join(", ")) : null,
      sent === null || typeof sent !== "object" || !Object.keys(sent).length ? null : el("code.sent", {}, JSON.stringify(sent))),
    el("td", {}, el("span.outcome", { "data-outcome": outcome ?? "running" }, (outcome ?? "running").replaceAll("_", " ")),
      reason || rule ? el("div.quiet", {}, [reason, rule].filter(Boolean).join(", ")) : null),
    el("td.number", {}, milliseconds(seconds)));
}
