// The tasks of all callers, which are loaded while their tab is shown.

import { el, find, given, replace } from "./dom.js";
import { parse } from "./json.js";
import { duration } from "./units.js";

const REFRESH = 2000;

export class Tasks {
  constructor(access) {
    this.access = access;
    this.panel = find("#tasks-panel");
    this.body = find("#tasks tbody");
    this.rows = new Map();
    this.panel.addEventListener("shown", () => this.load());
    setInterval(() => this.isShown() && this.load(), REFRESH);
  }

  isShown() {
    return !this.panel.hidden && !document.hidden && this.panel.checkVisibility();
  }

  clear() {
    this.rows.clear();
    replace(this.body);
    this.note("");
  }

  async load() {
    const { token } = this.access;
    try {
      const tasks = (await this.ask("/console/tasks")).tasks;
      if (token === this.access.token) this.show(tasks); // not if somebody signed in or out meanwhile
    } catch (error) {
      this.note(`The tasks could not be loaded: ${error.message}`);
    }
  }

  async cancel({ number, id }) {
    try {
      await this.ask(`/console/tasks/cancel?${new URLSearchParams({ number, id })}`, "POST");
      await this.load();
    } catch (error) {
      this.note(`Task ${id} could not be cancelled: ${error.message}`);
    }
  }

  async ask(path, method = "GET") {
    const response = await fetch(path, { method, headers: this.access.dataHeaders(), cache: "no-store" });
    if (!response.ok) throw new Error(`HTTP status ${response.status}`);
    return parse(await response.text());
  }

  // Rows of tasks that did not change stay as they are, so that the focus is not lost.
  show(tasks) {
    const before = this.rows;
    this.rows = new Map(tasks.map((task) => {
      const known = before.get(task.id);
      const state = JSON.stringify(task);
      const row = known?.state === state ? known : { state, line: this.line(task) };
      row.line.querySelector(".age").textContent = age(task.created_at);
      return [task.id, row];
    }));
    const lines = [...this.rows.values()].map(({ line }) => line);
    if (lines.length !== this.body.children.length || lines.some((line, place) => line !== this.body.children[place])) {
      const focused = document.activeElement?.closest("#tasks tr")?.dataset.id;
      replace(this.body, ...lines);
      if (focused) this.body.querySelector(`[data-id="${focused}"] button`)?.focus();
    }
    this.note(tasks.length ? "" : "No tasks yet.");
  }

  note(text) {
    find("#tasks-note").textContent = text;
  }

  line(task) {
    const { id, tool, status, runs, message, open } = task;
    const stop = open ? el("button.small", { type: "button", "aria-label": `Cancel task ${id}`, onclick: () => this.cancel(task) }, "Cancel") : null;
    return el("tr", { "data-id": id },
      el("td.time", {}, el("code", {}, id)),
      el("td.what", { title: tool }, given(tool)),
      el("td", {}, el("span.outcome", { "data-outcome": OUTCOMES[status] ?? status }, status.replaceAll("_", " "))),
      el("td.who", { title: message }, message === null ? null : given(message)),
      el("td.number", {}, String(runs)),
      el("td.number.age"),
      el("td", {}, stop));
  }
}

const OUTCOMES = { working: "running", completed: "ok" };

function age(created) {
  return duration(Math.max(1, Math.round((Date.now() - Date.parse(created)) / 1000)));
}
