// The page: loads the features, and connects the parts.

import { Access } from "./access.js";
import { Activity } from "./activity.js";
import { el, find, replace } from "./dom.js";
import { forgetAll } from "./history.js";
import { parse } from "./json.js";
import { Live } from "./live.js";
import { McpClient } from "./mcp.js";
import { Offer, loadGroups } from "./offer.js";
import { addressOf, keyInAddress } from "./routes.js";
import { makeTabs } from "./tabs.js";
import { Tasks } from "./tasks.js";
import { Panel } from "./workbench.js";

const MAX_PANELS = 30;
const STATES = {
  live: "live",
  away: "disconnected, reconnecting…",
  refused: "sign in",
  locked: "locked",
  connecting: "connecting…",
};

class Page {
  constructor() {
    this.access = new Access();
    this.client = new McpClient(this.access);
    const { access, client } = this;
    // What panels and copies of calls need to know about the server; completed when its state is loaded.
    this.server = { client, target: null, principal: null, get signedIn() { return Boolean(access.token); } };
    this.offer = new Offer((key) => this.visit(key));
    this.activity = new Activity({
      featureOf: (key) => this.offer.featureOf(key), onOpen: (key, text) => this.visit(key, text),
      onLatency: (key) => this.panels.get(key)?.showLatencies(this.activity.latenciesOf(key)), server: this.server,
    });
    this.tasks = new Tasks(this.access);
    this.live = new Live(this.access, { onMessage: (message) => this.receive(message), onState: (state, reason) => this.showConnection(state, reason) });
    this.state = null;
    this.panels = new Map();
    this.shown = null;
  }

  start() {
    this.showPanels = makeTabs(find("#tabs"), [...document.querySelectorAll("[data-tab]")]);
    this.showPanels([]);
    document.addEventListener("keydown", (event) => {
      if (event.key === "Escape") this.shown?.cancel();
    });
    find("#sign-in").addEventListener("submit", (event) => {
      event.preventDefault();
      this.signIn(find("#token").value.trim());
    });
    find(".skip").addEventListener("click", (event) => {
      event.preventDefault(); // the address belongs to the features
      find("#workbench").focus();
    });
    find("#sign-out").addEventListener("click", () => this.signOut());
    window.addEventListener("hashchange", () => this.onAddress());
    this.live.run();
  }

  onAddress() {
    if (this.access.readLink()) this.live.restart();
    else this.choose(keyInAddress() ?? this.offer.features()[0]?.key);
  }

  signIn(token) {
    this.access.token = token;
    find("#token").value = "";
    this.live.restart();
  }

  // Removes everything that only the caller with the token may see.
  signOut() {
    this.access.token = "";
    this.state = null;
    this.shown?.cancel();
    this.shown = null;
    this.panels.clear();
    forgetAll();
    this.activity.clear();
    this.tasks.clear();
    this.offer.explain("");
    replace(find("#workbench"));
    this.live.restart();
  }

  showConnection(state, reason = "") {
    const place = find("#connection");
    place.dataset.state = state;
    if (place.textContent !== STATES[state]) place.textContent = STATES[state];
    const wasOpen = !find("#gate").hidden;
    find("#gate").hidden = state !== "refused" && state !== "locked";
    find("#sign-in").hidden = state !== "refused";
    find("#locked").hidden = state !== "locked";
    find(".layout").hidden = !find("#gate").hidden && !this.state;
    if (state === "locked") this.offer.explain("Nothing is shown without the link.");
    if (state !== "refused") return;
    if (!this.state) this.offer.explain("Sign in to see the features.");
    find("#sign-in-problem").textContent = this.access.token ? `The server did not accept the token. ${reason}` : "";
    if (!wasOpen) find("#token").focus();
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
    if (message.activity) this.activity.show(message.activity);
  }

  showProblem(problem) {
    find("#problem").hidden = !problem;
    find("#problem-text").textContent = problem ?? "";
  }

  async load() {
    const { token } = this.access;
    const isStale = () => token !== this.access.token; // signed in or out meanwhile
    try {
      const response = await fetch("/console/state", { headers: this.access.dataHeaders(), cache: "no-store" });
      if (!response.ok) throw new Error(`HTTP status ${response.status}`);
      const state = parse(await response.text());
      if (isStale()) return;
      this.client.protocol = state.protocol;
      Object.assign(this.server, { target: state.target, principal: state.principal });
      this.state = state;
      this.showServer(state);
      const groups = await loadGroups(this.client, state);
      if (isStale()) return;
      this.offer.fill(groups);
      this.forgetChanged();
      const key = [keyInAddress(), this.shown?.feature.key].find((one) => one && this.offer.featureOf(one));
      this.choose(key ?? this.offer.features()[0]?.key);
    } catch (error) {
      this.offer.explain(`The lists could not be loaded: ${error.message}`);
    }
  }

  showServer({ server, limits, documentation, principal, panels }) {
    this.showPanels(panels);
    this.activity.showLimits(limits);
    find("#server-name").textContent = server.title ?? server.name;
    find("#server-version").textContent = server.version;
    document.title = `${server.title ?? server.name} – console`;
    find("#principal").textContent = principal.subject === "anonymous" ? "" : principal.subject;
    find("#sign-out").hidden = !this.access.token;
    find("#documentation").hidden = !documentation;
    if (documentation) find("#documentation").href = documentation;
  }

  // A panel whose feature is unchanged keeps the entered values, even after a restart of the server.
  forgetChanged() {
    const contract = ({ schema, description, title }) => JSON.stringify([schema, description, title]);
    for (const [key, panel] of this.panels) {
      const now = this.offer.featureOf(key);
      if (!panel.running && (!now || contract(now) !== contract(panel.feature))) this.panels.delete(key);
    }
  }

  // Opens a feature because a person chose it: the address changes, and the focus moves to its form.
  visit(key, text = null) {
    if (!this.offer.featureOf(key)) return;
    if (location.hash !== addressOf(key)) history.pushState(null, "", addressOf(key));
    const panel = this.choose(key);
    if (text !== null) panel.fill(text);
    find("#workbench").scrollIntoView({ block: "nearest" });
    (panel.element.querySelector(".arguments textarea, .arguments input:not(.include), .arguments select") ?? panel.callButton).focus();
  }

  choose(key) {
    const feature = this.offer.featureOf(key);
    if (!feature) return this.showNothing(key);
    const panel = this.panels.get(key) ?? new Panel(feature, this.server, this.activity.latenciesOf(key), () => this.live.restart());
    this.panels.delete(key);
    this.panels.set(key, panel);
    this.trimPanels();
    if (this.shown !== panel) {
      this.shown = panel;
      replace(find("#workbench"), panel.element);
    }
    this.offer.mark(key);
    return panel;
  }

  showNothing(key) {
    if (!key || !this.state) return null;
    this.shown = null;
    this.offer.mark(null);
    replace(find("#workbench"), el("p.empty", {}, "The server has no feature with this address. Choose one from the list."));
    return null;
  }

  trimPanels() {
    for (const [key, panel] of this.panels) {
      if (this.panels.size <= MAX_PANELS) return;
      if (!panel.running && panel !== this.shown) this.panels.delete(key);
    }
  }
}

new Page().start();
