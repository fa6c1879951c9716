// The panel of one feature: its description, a form, and next to it the result of the latest call.

import { CallView } from "./call_view.js";
import { perform } from "./calling.js";
import { histogram, inWords } from "./charts.js";
import { copyLine } from "./copying.js";
import { el, facts, given, newId, replace } from "./dom.js";
import { FieldError, rawField } from "./fields.js";
import { remember, remembered } from "./history.js";
import { canonical, parse, pretty } from "./json.js";
import { problemsIn } from "./problems.js";
import { failure } from "./results.js";
import { objectForm } from "./schema_form.js";
import { concealed, placeholderFor, restored } from "./sensitive.js";
import { bytes, count, duration, milliseconds } from "./units.js";

const OUTCOMES = { ok: "OK", error: "Error", refused: "Refused", cancelled: "Cancelled" };

export class Panel {
  // `server` is {client, target, principal, signedIn}; `onUnauthorized` is called when the token is refused.
  constructor(feature, server, latencies, onUnauthorized) {
    this.feature = feature;
    this.server = server;
    this.onUnauthorized = onUnauthorized;
    this.running = null;
    this.chart = el("div.latency");
    this.error = el("p.error", { role: "alert", hidden: true });
    this.place = el("div.arguments");
    this.result = el("div.result", {}, el("p.empty", {}, `The result appears here. Press Enter in the form, or ${feature.verb}.`));
    this.status = el("p.status");
    this.cancelButton = el("button", { type: "button", hidden: true, onclick: () => this.cancel() }, "Cancel");
    this.callButton = el("button.primary", { type: "submit" }, feature.verb);
    this.modeButton = el("button.small", { type: "button", onclick: () => this.switchMode() }, "Write JSON");
    this.taskBox = taskBox(feature.effects?.task_support);
    this.earlier = el("select.earlier", { "aria-label": "Earlier arguments", onchange: () => this.chooseEarlier() });
    this.mode = null;
    this.showForm({});
    this.showEarlier();
    this.element = this.build();
    this.showLatencies(latencies);
  }

  build() {
    const { feature } = this;
    const [argumentsId, resultId] = [newId("heading"), newId("heading")];
    const form = el("form", { novalidate: true, "aria-label": `Arguments of ${feature.name}` }, this.place, this.error,
      el("div.buttons", {}, this.callButton, this.cancelButton,
        this.taskBox ? el("label.check", {}, this.taskBox, "as a task") : null,
        el("span.quiet.keys", {}, "Enter calls, Shift+Enter adds a line, Esc cancels")));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.call();
    });
    const input = el("section.input", { "aria-labelledby": argumentsId },
      el("div.heading", {}, el("h3", { id: argumentsId }, "Arguments"), this.earlier, this.modeButton), form,
      copyLine(feature, this.server, () => this.read()), this.effects());
    const output = el("section.output", { "aria-labelledby": resultId },
      el("div.heading", {}, el("h3", { id: resultId }, "Result")),
      el("div", { "aria-live": "polite" }, this.status, this.result));
    const element = el("div.panel", { "data-key": feature.key }, heading(feature), el("div.sides", {}, input, output));
    element.addEventListener("keydown", (event) => this.onKey(event));
    return element;
  }

  onKey(event) {
    const { target } = event;
    const isArea = target.tagName === "TEXTAREA", isChoice = target.tagName === "SELECT" || target.type === "checkbox";
    const submits = isChoice || (isArea && ("text" in target.dataset ? !event.shiftKey : event.ctrlKey || event.metaKey));
    if (event.key === "Enter" && submits && !event.isComposing && target.form) {
      event.preventDefault();
      target.form.requestSubmit();
    }
  }

  showForm(values) {
    const form = objectForm(this.feature.schema, values);
    this.feature.peek = form.peek;
    this.mode = { name: "form", read: form.read, fail: form.fail };
    replace(this.place, form.element);
    this.modeButton.textContent = "Write JSON";
  }

  // Sensitive values are not shown; those that are not edited are sent nevertheless.
  showJson(text) {
    const original = parse(text);
    const hidden = concealed(original, this.feature.schema, placeholderFor);
    const shown = pretty(hidden);
    const field = rawField(undefined, "{}");
    const id = newId("json");
    field.control.id = id;
    field.control.value = shown;
    field.control.rows = Math.min(24, Math.max(4, shown.split("\n").length));
    const read = () => {
      const entered = field.read();
      return JSON.stringify(hidden) === JSON.stringify(original) ? entered : JSON.stringify(restored(parse(entered), hidden, original));
    };
    this.mode = { name: "json", read, fail: () => undefined };
    replace(this.place, el("label.label", { for: id }, "Arguments as JSON"), field.control);
    this.modeButton.textContent = "Use the form";
  }

  switchMode() {
    this.showError(null);
    if (this.mode.name === "form") {
      this.showJson(this.textOrNothing());
      return;
    }
    try {
      this.fill(this.mode.read());
    } catch (error) {
      this.showError(error.message);
    }
  }

  // Fills in the form, or shows JSON if the form cannot show all of it.
  fill(text) {
    this.showError(null);
    this.showForm(parse(text));
    try {
      if (canonical(this.mode.read()) === canonical(text)) return;
    } catch (error) {
      if (error instanceof FieldError) return; // something is missing, which the form shows
    }
    this.showJson(text);
    this.showError("The form cannot show all of this.");
  }

  textOrNothing() {
    try {
      return this.mode.read();
    } catch {
      return "{}";
    }
  }

  chooseEarlier() {
    const text = remembered(this.feature.key)[Number(this.earlier.value)];
    this.earlier.value = "";
    if (text !== undefined) this.fill(text);
  }

  showEarlier() {
    const texts = remembered(this.feature.key);
    this.earlier.hidden = texts.length === 0;
    replace(this.earlier, el("option", { value: "" }, "Earlier arguments"),
      ...texts.map((text, place) => el("option", { value: String(place) }, text.length > 80 ? `${text.slice(0, 79)}…` : text)));
  }

  showError(problem) {
    this.error.hidden = problem === null;
    this.error.textContent = problem ?? "";
  }

  // Returns the arguments as JSON text; null if they cannot be sent, which the form shows.
  read() {
    this.showError(null);
    try {
      return this.mode.read();
    } catch (error) {
      if (!(error instanceof FieldError)) throw error;
      this.showError(this.mode.name === "json" ? error.message : this.invalidText());
      this.focusInvalid(error.input);
      return null;
    }
  }

  invalidText() {
    const invalid = this.place.querySelectorAll("[aria-invalid=true], fieldset.invalid").length;
    return invalid > 1 ? `${invalid} fields need your attention.` : "One field needs your attention.";
  }

  focusInvalid(input) {
    const first = this.place.querySelector("[aria-invalid=true], fieldset.invalid input, fieldset.invalid button");
    (first ?? input)?.focus();
    (first ?? input)?.closest(".field, fieldset")?.scrollIntoView({ block: "nearest" }); // with its label and its error
  }

  // Shows the server's validation errors at the fields that they are about.
  showProblems(text) {
    const problems = problemsIn(text, Object.keys(this.feature.schema?.properties ?? {}));
    if (!problems || this.mode.name !== "form") return;
    const placed = problems.map(([path, message]) => this.mode.fail(path, message));
    const others = problems.filter((_, number) => placed[number] === undefined).map(([path, message]) => (path ? `${path}: ${message}` : message));
    if (!placed.includes("shown") && !others.length) others.push(text);
    this.showError([placed.includes("shown") ? this.invalidText() : null, ...others].filter(Boolean).join(" "));
    this.focusInvalid(null);
  }

  async call() {
    if (this.running) return;
    const text = this.read();
    if (text === null) return;
    remember(this.feature.key, text, this.feature.schema);
    this.showEarlier();
    this.running = new AbortController();
    const { signal } = this.running;
    this.cancelButton.hidden = false;
    this.callButton.setAttribute("aria-disabled", "true");
    const began = performance.now();
    const show = new CallView(this.result, (asks) => { this.status.textContent = asks ? "Waiting for your answer…" : "Running…"; });
    show.onAsking(false);
    this.status.dataset.outcome = "running";
    try {
      const { result, size } = await perform(this.server.client, this.feature.request(text, this.taskBox?.checked), show, signal);
      this.finish(began, result.isError ? "error" : "ok", size);
      show.outcome(this.feature.render(result), result);
      if (result.isError) this.showProblems(result.content?.[0]?.text);
    } catch (error) {
      this.finish(began, signal.aborted ? "cancelled" : "refused");
      if (!signal.aborted) this.showRefusal(error, show);
    } finally {
      show.end();
      this.running = null;
      this.cancelButton.hidden = true;
      this.callButton.removeAttribute("aria-disabled");
      if (document.activeElement === document.body || document.activeElement === this.cancelButton) this.callButton.focus();
      if (this.element.isConnected) this.status.scrollIntoView({ block: "nearest" });
    }
  }

  showRefusal(error, show) {
    show.outcome(failure(error), null);
    this.showProblems(error.message);
    if (error.status === 401) this.onUnauthorized();
  }

  finish(began, outcome, size) {
    const took = milliseconds((performance.now() - began) / 1000);
    replace(this.status, el("span.outcome", { "data-outcome": outcome }, OUTCOMES[outcome]), ` ${took}${size === undefined ? "" : `, ${bytes(size)}`}`);
    this.status.dataset.outcome = outcome;
  }

  cancel() {
    this.running?.abort();
  }

  showLatencies(latencies) {
    replace(this.chart, ...(latencies.length ? [histogram(latencies), el("p.quiet", {}, inWords(latencies))] : []));
  }

  effects() {
    const { effects } = this.feature;
    return effects ? el("details.effects", {}, el("summary", {}, "Limits, layers and latency"), limitsOf(effects), this.chart) : null;
  }
}

const HINTS = { readOnlyHint: "read-only", destructiveHint: "destructive", idempotentHint: "idempotent", openWorldHint: "open world" };

// The title is large and the name in monospace; a feature without a title has only the name.
function heading({ kind, name, title, description, mimeType, annotations, toolset }) {
  const hasTitle = title && title !== name;
  const hints = Object.entries(HINTS).filter(([hint]) => annotations?.[hint]);
  return el("header.about", {},
    el("div.title", {}, el(hasTitle ? "h2" : "h2.mono", {}, given(hasTitle ? title : name)), hasTitle ? el("code.name", {}, given(name)) : null,
      el("span.badges", {}, el("span.badge.kind", {}, kind), toolset ? el("span.badge.toolset", { title: "tool set" }, given(toolset)) : null,
        mimeType ? el("span.badge", {}, mimeType) : null, ...hints.map(([hint, text]) => el("span.badge", { "data-hint": hint }, text)))),
    description ? el("p.description", {}, description) : null);
}

function taskBox(support) {
  if (support !== "optional" && support !== "required") return null;
  const box = el("input", { type: "checkbox", checked: support === "required" });
  box.disabled = support === "required";
  return box;
}

function limitsOf(effects) {
  const { limits } = effects;
  const queue = limits.queue_limit ? `queue of ${count(limits.queue_limit)} for up to ${duration(limits.queue_timeout_seconds)}` : "no queue";
  const longest = limits.max_timeout_seconds ? `, with progress up to ${duration(limits.max_timeout_seconds)}` : "";
  return facts([
    ["timeout", `${duration(limits.timeout_seconds)}${longest}`],
    ["concurrency", limits.max_concurrency === null ? "unlimited" : `${count(limits.max_concurrency)}, ${queue}`],
    ["runs", limits.execution === "loop" ? "on the event loop" : `in a ${limits.execution}${limits.pool ? ` of the pool ${limits.pool}` : ""}`],
    ["max. result size", limits.max_result_bytes === null ? "unlimited" : bytes(limits.max_result_bytes)],
    ["arguments", limits.coerce_arguments ? "converted" : null],
    ["quotas", effects.quotas.join("; ")],
    ["cost", effects.quotas.length ? effects.cost : null],
    ["scopes", effects.scopes.join(", ")],
    ["layers", effects.layers.join(" → ")],
  ]);
}
