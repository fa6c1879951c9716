// The page: loads the features, and connects the parts.

import { Access } from "./access.js";
import { Activity } from "./activity.js";
import { el, given, own, replace } from "./dom.js";
import { parse } from "./json.js";
import { Live } from "./live.js";
import { McpClient } from "./mcp.js";
import { Panel, promptFeature, resourceFeature, toolFeature } from "./workbench.js";

const LISTS = {
  tools: [["tools/list", "tools", toolFeature, "Tools"]],
  prompts: [["prompts/list", "prompts", promptFeature, "Prompts"]],
  resources: [
    ["resources/list", "resources", resourceFeature, "Resources"],
    ["resources/templates/list", "resourceTemplates", resourceFeature, "Templates"],
  ],
};
const REFRESH_SECONDS = 5;
const STATES = {
  live: "live",
  away: "disconnected; reconnecting…",
  refused: "a token is required",
  locked: "open the link that the server printed when it started",
  connecting: "connecting…",
};

const find = (selector) => document.querySelector(selector);

class Page {
  constructor() {
    this.access = new Access();
    this.client = new McpClient(this.access);
    this.activity = new Activity({ onChoose: (key) => this.choose(key, true), onLatency: (key) => this.refreshChart(key) });
    this.live = new Live(this.access, { onMessage: (message) => this.receive(message), onState: (state) => this.showConnection(state) });
    this.state = null;
    this.groups = [];
    this.panels = new Map();
    this.shown = null;
  }

  start() {
    find("#search").addEventListener("input", () => this.showOffer());
    document.addEventListener("keydown", (event) => {
      if (event.key === "Escape") this.shown?.cancel();
    });
    find("#access-form").addEventListener("submit", (event) => {
      event.preventDefault();
      this.access.token = find("#token").value.trim();
      find("#access").open = false;
      this.live.restart();
    });
    window.addEventListener("hashchange", () => {
      this.access.readLink();
      this.live.restart();
    });
    setInterval(() => this.refresh(), REFRESH_SECONDS * 1000);
    this.live.run();
  }

  showConnection(state) {
    const place = find("#connection");
    if (place.dataset.state === state) return;
    place.dataset.state = state;
    place.textContent = STATES[state];
    if (state === "refused") find("#access").open = true;
  }

  receive(message) {
    if (message.type === "hello") {
      this.activity.begin(message.instance_id);
      this.showProblem(message.problem);
      this.activity.add(message.calls);
      if (this.state?.instance_id !== message.instance_id) this.load();
    } else if (message.type === "calls") {
      this.activity.add(message.calls, message.missed);
    } else if (message.type === "problem") {
      this.showProblem(message.problem);
    }
  }

  showProblem(problem) {
    find("#problem").hidden = !problem;
    find("#problem-text").textContent = problem ?? "";
  }

  async fetchState() {
    const response = await fetch("/console/state", { headers: this.access.dataHeaders(), cache: "no-store" });
    if (!response.ok) throw new Error(`HTTP status ${response.status}`);
    return parse(await response.text());
  }

  async refresh() {
    if (document.visibilityState !== "visible" || !this.state) return;
    try {
      this.activity.showServer(await this.fetchState());
    } catch {
      // The line about the connection shows that the server cannot be reached.
    }
  }

  async load() {
    try {
      const state = await this.fetchState();
      this.client.protocol = state.protocol;
      this.state = state;
      this.activity.showServer(state);
      find("#server-name").textContent = state.server.title ?? state.server.name;
      find("#server-version").textContent = state.server.version;
      document.title = `${state.server.name} – console`;
      await this.loadOffer(state.protocol.offers);
    } catch (error) {
      replace(find("#offer"), el("p.failure", {}, `The lists could not be loaded: ${error.message}`));
    }
  }

  async loadOffer(offers) {
    const groups = [];
    for (const kind of Object.keys(LISTS).filter((one) => offers.includes(one))) {
      for (const [method, member, feature, heading] of LISTS[kind]) {
        groups.push({ heading, features: (await this.all(method, member)).map(feature) });
      }
    }
    this.groups = groups;
    this.showOffer();
    const shown = this.shown?.feature.key;
    const kept = this.features().find((one) => one.key === shown);
    this.forgetChanged();
    if (kept) this.choose(kept.key, false);
    else this.choose(this.features()[0]?.key, false);
  }

  async all(method, member) {
    const found = [];
    for (let cursor; ;) {
      const { result } = await this.client.request(method, cursor === undefined ? {} : { cursor: JSON.stringify(cursor) });
      found.push(...(result[member] ?? []));
      cursor = result.nextCursor;
      if (cursor === undefined || cursor === null) return found;
    }
  }

  features() {
    return this.groups.flatMap((group) => group.features);
  }

  // A panel whose feature is unchanged keeps the entered values, even after a restart of the server.
  forgetChanged() {
    const now = new Map(this.features().map((one) => [one.key, JSON.stringify([one.schema, one.description])]));
    for (const [key, panel] of this.panels) {
      const { schema, description } = panel.feature;
      if (!panel.running && now.get(key) !== JSON.stringify([schema, description])) this.panels.delete(key);
    }
  }

  showOffer() {
    const held = document.activeElement?.dataset?.key;
    const words = find("#search").value.toLowerCase().split(/\s+/).filter(Boolean);
    const matches = (one) => words.every((word) => `${one.name} ${one.title ?? ""} ${one.description ?? ""}`.toLowerCase().includes(word));
    const parts = this.groups.map(({ heading, features }) => [heading, features.filter(matches)]).filter(([, found]) => found.length)
      .flatMap(([heading, found]) => [el("h2", {}, heading), el("ul.plain", {}, ...found.map((one) => el("li", {}, this.entry(one))))]);
    replace(find("#offer"), ...(parts.length ? parts : [el("p.quiet", {}, words.length ? "No matches." : "The server has no features.")]));
    if (held !== undefined) [...find("#offer").querySelectorAll("button")].find((one) => one.dataset.key === held)?.focus();
  }

  entry(feature) {
    const current = this.shown?.feature.key === feature.key;
    const title = feature.title && feature.title !== feature.name ? el("small.quiet", {}, feature.title) : null;
    return el("button.entry", { type: "button", "data-key": feature.key, "aria-current": current ? "true" : undefined, onclick: () => this.choose(feature.key, true) },
      given(feature.name), title);
  }

  choose(key, move) {
    const feature = this.features().find((one) => one.key === key);
    if (!feature) return;
    if (!this.panels.has(key)) this.panels.set(key, this.makePanel(feature));
    const panel = this.panels.get(key);
    if (this.shown !== panel) {
      this.shown = panel;
      replace(find("#workbench"), panel.element);
      this.showOffer();
    }
    if (!move) return;
    find("#workbench").scrollIntoView({ block: "nearest" });
    (panel.element.querySelector(".arguments textarea, .arguments input:not(.include), .arguments select") ?? panel.callButton).focus();
  }

  makePanel(feature) {
    const kind = feature.kind === "template" ? "resources" : `${feature.kind}s`;
    const key = feature.kind === "template" ? `resource ${feature.name}` : feature.key;
    const panel = new Panel(feature, this.client, own(this.state[kind], feature.name), this.activity.latenciesOf(key));
    if (feature.initial?.uri) panel.showForm(feature.initial);
    return panel;
  }

  refreshChart(key) {
    this.panels.get(key)?.showLatencies(this.activity.latenciesOf(key));
  }
}

new Page().start();
