// The activity of all clients: calls, latencies, sessions, and what runs now.

import { Calls } from "./calls.js";
import { inWords, sparkline } from "./charts.js";
import { el, facts, find, given, replace } from "./dom.js";
import { bytes, count, duration } from "./units.js";

const MAX_LATENCIES = 200, MAX_FEATURES = 100, MAX_CLIENTS = 50, CLIENTS_SHOWN = 10;
const SUCCESSFUL = new Set(["ok", "input_required"]);
const NONE = { running: 0, zombies: 0, session_count: 0, sessions: [] };

export class Activity {
  constructor({ featureOf, onOpen, onLatency, server }) {
    this.calls = new Calls({ featureOf, onOpen, server });
    this.onOpen = onOpen;
    this.onLatency = onLatency;
    this.clear();
  }

  clear() {
    this.calls.clear();
    this.latencies = new Map();
    this.lines = new Map();
    this.clients = new Map();
    this.now = NONE;
    this.limits = null;
    this.instanceId = "";
    replace(find("#latencies"), el("li.empty", {}, "No calls yet."));
    this.show(NONE);
  }

  // A restarted server numbers its calls from one again, so keys contain the ID of the instance.
  begin(instanceId) {
    if (instanceId !== this.instanceId) this.calls.endRunning();
    this.instanceId = instanceId;
  }

  add(records, missed = 0) {
    const touched = new Set();
    for (const record of records) {
      const key = `${this.instanceId}:${record.number}`;
      if (this.calls.hasEnded(key)) continue;
      this.calls.put(key, record);
      this.noteClient(record);
      if (record.outcome !== undefined && record.kind) touched.add(this.noteLatency(record));
    }
    this.calls.noteMissed(missed);
    if (touched.size) {
      this.showLatencies(touched);
      touched.forEach((key) => this.onLatency(key));
    }
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
    const place = find("#latencies");
    place.querySelector(".empty")?.remove();
    for (const key of touched) {
      const known = this.latencies.get(key);
      if (!known) continue;
      const line = this.lines.get(key) ?? this.addLine(place, key);
      replace(line.chart, sparkline(known));
      line.words.textContent = inWords(known);
    }
  }

  addLine(place, key) {
    const line = { chart: el("span"), words: el("span.quiet") };
    const name = key.slice(key.indexOf(" ") + 1);
    const button = el("button.link", { type: "button", onclick: () => this.onOpen(key, null) }, given(name));
    line.element = el("li.latency-row", {}, button, line.chart, line.words);
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
    if (this.clients.size > MAX_CLIENTS) this.clients.delete(this.clients.keys().next().value);
  }

  // `now` is {running, zombies, session_count, sessions}, which the server sends with every change.
  show(now) {
    this.now = now;
    find("#running").textContent = now.running ? `${count(now.running)} running` : "";
    this.showClients();
    this.showLimits();
  }

  showClients() {
    const { sessions, session_count: all } = this.now;
    const held = sessions.map((one) => el("li", {}, given(one.client ?? "unnamed client"), el("span.quiet", {},
      ` session ${one.id}, ${one.revision ?? "no handshake yet"}, ${one.subject}, ${count(one.running)} running, ${one.in_use ? "in use" : `idle for ${idle(one.last_used)}`}`)));
    const seen = [...this.clients.values()].reverse().slice(0, CLIENTS_SHOWN).map(({ name, record, count: requests }) => el("li", {},
      given(name), el("span.quiet", {}, ` ${record.revision}, ${record.subject}${record.tenant ? ` of ${record.tenant}` : ""}, ${count(requests, "request")}`)));
    const more = all > sessions.length ? [el("li.quiet", {}, `and ${count(all - sessions.length)} more`)] : [];
    replace(find("#sessions"),
      el("li.group", {}, "Recent clients"), ...(seen.length ? seen : [el("li.quiet", {}, "None yet.")]),
      el("li.group", {}, count(all, "open session")), ...held, ...more);
  }

  showLimits(limits = this.limits) {
    this.limits = limits;
    if (!limits) return replace(find("#limits"));
    const list = facts([
      ["running now", `${count(this.now.running)} of ${count(limits.max_inflight)}`],
      ["abandoned", this.now.zombies ? `${count(this.now.zombies)}, whose callers were answered while the code still runs` : null],
      ["concurrency", limits.max_concurrency === null ? "unlimited" : count(limits.max_concurrency)],
      ["threads", count(limits.threads)],
      ["max. message size", bytes(limits.max_message_bytes)],
      ["shutdown waits for", duration(limits.drain_seconds)],
    ]);
    return replace(find("#limits"), ...list.childNodes);
  }
}

function idle(lastUsed) {
  return duration(Math.max(1, Math.round(Date.now() / 1000 - lastUsed)));
}
