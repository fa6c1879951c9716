// The panel of one feature: its description, a form, and the result of the latest call.

import { bytes, el, facts, given, milliseconds, newId, replace } from "./dom.js";
import { perform } from "./calling.js";
import { histogram, inWords } from "./charts.js";
import { FieldError, rawField } from "./fields.js";
import { canonical, parse } from "./json.js";
import { mirroredHeaders } from "./mcp.js";
import { failure, json, promptResult, readResult, toolResult } from "./results.js";
import { objectForm } from "./schema_form.js";

const LOG_LINES = 200;

export class Panel {
  // `feature` is {kind, key, name, title, description, schema, annotations, request(text) -> call}.
  constructor(feature, client, effects, latencies) {
    this.feature = feature;
    this.client = client;
    this.running = null;
    this.chart = el("div.latency");
    this.error = el("p.error", { role: "alert", hidden: true });
    this.place = el("div.arguments");
    this.result = el("div.result");
    this.status = el("p.status");
    this.cancelButton = el("button", { type: "button", hidden: true, onclick: () => this.cancel() }, "Cancel (Esc)");
    this.callButton = el("button.primary", { type: "submit" }, feature.verb);
    this.modeButton = el("button", { type: "button", onclick: () => this.switchMode() }, "Write JSON");
    this.taskBox = taskBox(effects?.task_support);
    this.mode = null;
    this.showForm({});
    this.element = this.build(effects);
    this.showLatencies(latencies);
  }

  build(effects) {
    const { feature } = this;
    const form = el("form", { novalidate: true, "aria-label": `Arguments of ${feature.name}` }, this.place, this.error,
      el("div.buttons", {}, this.callButton, this.cancelButton, this.modeButton,
        this.taskBox ? el("label.check", {}, this.taskBox, "as a task") : null),
      el("p.quiet.keys", {}, "Enter: call. Shift+Enter: new line. Esc: cancel."));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.call();
    });
    const element = el("div.panel", {}, ...heading(feature), this.chart, limitsOf(effects),
      el("h3", {}, "Arguments"), form, el("h3", {}, "Result"),
      el("div", { "aria-live": "polite", "aria-label": "Result" }, this.status, this.result));
    element.addEventListener("keydown", (event) => this.onKey(event));
    return element;
  }

  onKey(event) {
    const area = event.target;
    const submits = "text" in (area.dataset ?? {}) ? !event.shiftKey : event.ctrlKey || event.metaKey;
    if (event.key === "Enter" && area.tagName === "TEXTAREA" && submits && !event.isComposing) {
      event.preventDefault();
      area.form?.requestSubmit();
    }
  }

  showForm(values) {
    const form = objectForm(this.feature.schema, values);
    this.mode = { name: "form", read: form.read };
    replace(this.place, form.element);
    this.modeButton.textContent = "Write JSON";
  }

  showJson(text) {
    const field = rawField(undefined, "{}");
    const id = newId("json");
    field.control.id = id;
    field.control.value = text;
    field.control.rows = Math.min(24, Math.max(4, text.split("\n").length));
    this.mode = { name: "json", read: field.read };
    replace(this.place, el("label.label", { for: id }, "Arguments as JSON"), field.control);
    this.modeButton.textContent = "Use the form";
  }

  switchMode() {
    this.showError(null);
    if (this.mode.name === "form") {
      this.showJson(this.textOrNothing());
      return;
    }
    const before = this.mode.read;
    try {
      const text = before();
      this.showForm(parse(text));
      if (canonical(this.mode.read()) === canonical(text)) return;
      this.showJson(text);
      this.showError("The form cannot show all of this.");
    } catch (error) {
      if (this.mode.name === "form") this.showJson("{}");
      this.showError(error.message);
    }
  }

  textOrNothing() {
    try {
      return JSON.stringify(parse(this.mode.read()), null, 2);
    } catch {
      return "{}";
    }
  }

  showError(problem) {
    this.error.hidden = problem === null;
    this.error.textContent = problem ?? "";
  }

  read() {
    this.showError(null);
    try {
      return this.mode.read();
    } catch (error) {
      if (!(error instanceof FieldError)) throw error;
      this.showError(this.mode.name === "json" ? error.message : "Some values are missing or invalid.");
      error.input?.focus();
      return null;
    }
  }

  async call() {
    if (this.running) return;
    const text = this.read();
    if (text === null) return;
    this.running = new AbortController();
    this.cancelButton.hidden = false;
    this.callButton.setAttribute("aria-disabled", "true");
    const began = performance.now();
    const show = new CallView(this.result, (asks) => { this.status.textContent = asks ? "waiting for your answer…" : "running…"; });
    show.onAsking(false);
    this.status.dataset.outcome = "running";
    try {
      const { result, size } = await perform(this.client, this.feature.request(text, this.taskBox?.checked), show, this.running.signal);
      this.finish(began, result.isError ? "error" : "ok", size);
      show.outcome(this.feature.render(result), result);
    } catch (error) {
      this.finish(began, this.running.signal.aborted ? "cancelled" : "refused");
      if (!this.running.signal.aborted) show.outcome(failure(error), null);
    } finally {
      this.running = null;
      this.cancelButton.hidden = true;
      this.callButton.removeAttribute("aria-disabled");
      if (document.activeElement === document.body || document.activeElement === this.cancelButton) this.callButton.focus();
    }
  }

  finish(began, outcome, size) {
    const took = milliseconds((performance.now() - began) / 1000);
    this.status.textContent = `${outcome}, ${took}${size === undefined ? "" : `, ${bytes(size)}`}`;
    this.status.dataset.outcome = outcome;
  }

  cancel() {
    this.running?.abort();
  }

  showLatencies(latencies) {
    replace(this.chart, ...(latencies.length ? [histogram(latencies), el("p.quiet", {}, inWords(latencies))] : []));
  }
}

// Progress, log messages, questions and the result of a call.
class CallView {
  constructor(place, onAsking) {
    this.onAsking = onAsking;
    this.bar = el("progress", { "aria-label": "Progress", hidden: true });
    this.word = el("span.quiet");
    this.lines = el("ol.log", { "aria-label": "Log messages" });
    this.questions = el("div");
    this.answer = el("div");
    replace(place, el("p.progress", {}, this.bar, this.word), this.lines, this.questions, this.answer);
    this.onNotification = (message) => this.notice(message);
    this.onTask = (task) => { this.word.textContent = `task ${task.status}${task.statusMessage ? `: ${task.statusMessage}` : ""}`; };
  }

  notice({ method, params = {} }) {
    if (method === "notifications/progress") this.progress(params);
    else if (method === "notifications/message") this.line(params);
  }

  progress({ progress, total, message }) {
    this.bar.hidden = false;
    if (total) {
      this.bar.max = total;
      this.bar.value = progress;
    } else {
      this.bar.removeAttribute("value");
    }
    const share = total ? `${progress} of ${total}` : String(progress);
    this.word.textContent = [share, message].filter(Boolean).join(", ");
  }

  line({ level, data, logger }) {
    const text = typeof data === "string" ? data : JSON.stringify(data);
    this.lines.append(el("li", { "data-level": level }, el("b", {}, level), logger ? ` ${logger}:` : "", ` ${text}`));
    if (this.lines.children.length > LOG_LINES) this.lines.firstChild.remove();
  }

  outcome(parts, raw) {
    replace(this.answer, ...parts, raw === null ? null : el("details", {}, el("summary", {}, "Full result"), json(raw)));
  }
}

function heading({ kind, name, title, description, annotations }) {
  const marks = Object.entries({
    readOnlyHint: "read-only", destructiveHint: "destructive", idempotentHint: "idempotent", openWorldHint: "open world",
  }).filter(([hint]) => annotations?.[hint]).map(([hint, text]) => el("span.mark", { "data-hint": hint }, text));
  return [
    el("h2", {}, given(name), " ", el("small.quiet", {}, title && title !== name ? `${title}, ${kind}` : kind)),
    marks.length ? el("p.marks", {}, ...marks) : null,
    description ? el("p.description", {}, description) : null,
  ].filter(Boolean);
}

function taskBox(support) {
  if (support !== "optional" && support !== "required") return null;
  const box = el("input", { type: "checkbox", checked: support === "required" });
  box.disabled = support === "required";
  return box;
}

function limitsOf(effects) {
  if (!effects) return null;
  const { limits } = effects;
  const queue = limits.queue_limit ? `queue of ${limits.queue_limit} for up to ${limits.queue_timeout_seconds} s` : "no queue";
  const longest = limits.max_timeout_seconds ? `, with progress up to ${limits.max_timeout_seconds} s` : "";
  const list = facts([
    ["timeout", `${limits.timeout_seconds} s${longest}`],
    ["concurrency", limits.max_concurrency === null ? "unlimited" : `${limits.max_concurrency}, ${queue}`],
    ["runs", limits.execution === "loop" ? "on the event loop" : `in a ${limits.execution}${limits.pool ? ` of the pool ${limits.pool}` : ""}`],
    ["max. result size", limits.max_result_bytes === null ? "unlimited" : bytes(limits.max_result_bytes)],
    ["arguments", limits.coerce_arguments ? "converted" : null],
    ["quotas", effects.quotas.join("; ")],
    ["cost", effects.quotas.length ? effects.cost : null],
    ["scopes", effects.scopes.join(", ")],
    ["tool set", effects.toolset],
    ["layers", effects.layers.join(" → ")],
  ]);
  return el("details.effects", {}, el("summary", {}, "Effective limits and layers"), list);
}

// Make the features of panels from the entries in the server's lists.
export function toolFeature(tool) {
  return {
    kind: "tool", key: `tool ${tool.name}`, name: tool.name, title: tool.title ?? tool.annotations?.title,
    description: tool.description, schema: tool.inputSchema, annotations: tool.annotations, verb: "Call", render: toolResult,
    request: (text, asTask) => ({
      method: "tools/call", name: tool.name, asTask, mirrored: mirroredHeaders(tool.inputSchema, parse(text)),
      params: { name: JSON.stringify(tool.name), arguments: text },
    }),
  };
}

export function promptFeature(prompt) {
  const names = prompt.arguments ?? [];
  const properties = Object.fromEntries(names.map((one) => [one.name, { type: "string", description: one.description, title: one.title }]));
  const required = names.filter((one) => one.required).map((one) => one.name);
  return {
    kind: "prompt", key: `prompt ${prompt.name}`, name: prompt.name, title: prompt.title, description: prompt.description,
    schema: { type: "object", properties, required, additionalProperties: false }, verb: "Get", render: promptResult,
    request: (text) => ({ method: "prompts/get", name: prompt.name, params: { name: JSON.stringify(prompt.name), arguments: text } }),
  };
}

export function resourceFeature({ uri, uriTemplate, name, title, description, mimeType }) {
  const variables = uriTemplate === undefined ? [] : ["uri"];
  const properties = uriTemplate === undefined ? {} : { uri: { type: "string", description: `A URI of the form ${uriTemplate}` } };
  const words = [description, mimeType].filter(Boolean).join(" – ");
  return {
    kind: uriTemplate === undefined ? "resource" : "template", key: `resource ${uri ?? uriTemplate}`, name: uri ?? uriTemplate,
    title: title ?? name, description: words, schema: { type: "object", properties, required: variables, additionalProperties: false },
    verb: "Read", render: readResult, initial: { uri: uriTemplate },
    request: (text) => {
      const wanted = uri ?? parse(text).uri;
      return { method: "resources/read", name: wanted, params: { uri: JSON.stringify(wanted) } };
    },
  };
}
