// Questions that a call asks while it runs: forms, approvals, pages to open, model answers and directories.

import { el, given } from "./dom.js";
import { FieldError } from "./fields.js";
import { json } from "./results.js";
import { typeOf } from "./schema.js";
import { objectForm } from "./schema_form.js";

const DECLINE = () => '{"action":"decline"}', DISMISS = () => '{"action":"cancel"}';

// Shows all questions of a round, one after the other; returns {key: JSON text of the answer}.
export async function answersTo(requests, place, signal) {
  const answers = {};
  for (const [key, asked] of Object.entries(requests)) {
    answers[key] = await ask(key, asked, place, signal);
  }
  return answers;
}

function ask(key, asked, place, signal) {
  const { method, params = {} } = asked;
  switch (method) {
    case "elicitation/create":
      return params.mode === "url" ? askToOpen(key, params, place, signal) : askForm(key, params, place, signal);
    case "sampling/createMessage": return askModel(key, params, place, signal);
    case "roots/list": return askRoots(key, place, signal);
    default: return Promise.reject(new Error(`The server sent ${method}, which this page does not support`));
  }
}

function askForm(key, params, place, signal) {
  const schema = params.requestedSchema ?? {};
  const single = singleBoolean(schema);
  if (single === "approve") return askApproval(key, params, place, signal);
  if (single !== null) return askYesOrNo(key, params, single, place, signal);
  const form = objectForm(schema, defaultsOf(schema));
  return shown(key, "The server asks", params.message, form.element, place, signal, {
    Answer: () => `{"action":"accept","content":${form.read()}}`, Decline: DECLINE, Dismiss: DISMISS,
  });
}

// The name of the only argument if it is a boolean that must be given; null otherwise.
function singleBoolean({ properties = {}, required = [] }) {
  const [[name, schema] = [], ...others] = Object.entries(properties);
  return name !== undefined && !others.length && required.includes(name) && typeOf(schema) === "boolean" ? name : null;
}

function answer(name, value) {
  return () => JSON.stringify({ action: "accept", content: { [name]: value } });
}

// No button is pressed by Enter, because the same key has just started the call.
function askApproval(key, params, place, signal) {
  return shown(key, "Approval needed", params.message, null, place, signal, { Approve: answer("approve", true), Decline: DECLINE }, false);
}

function askYesOrNo(key, params, name, place, signal) {
  const { title, description } = params.requestedSchema.properties[name];
  const body = el("p", {}, el("b", {}, given(title ?? name)), description ? ` ${description}` : null);
  return shown(key, "The server asks", params.message, body, place, signal,
    { Yes: answer(name, true), No: answer(name, false), Decline: DECLINE, Dismiss: DISMISS }, false);
}

function defaultsOf(schema) {
  const pairs = Object.entries(schema?.properties ?? {}).filter(([, one]) => one && one.default !== undefined);
  return Object.fromEntries(pairs.map(([name, one]) => [name, one.default]));
}

function askToOpen(key, params, place, signal) {
  const safe = /^https?:\/\//i.test(params.url ?? "");
  const link = safe ? el("a", { href: params.url, target: "_blank", rel: "noopener noreferrer" }, given(params.url)) : given(String(params.url));
  return shown(key, "The server asks you to open a page", params.message, el("p", {}, link), place, signal,
    { "I opened it": () => '{"action":"accept"}', Decline: DECLINE, Dismiss: DISMISS });
}

function askModel(key, params, place, signal) {
  const area = el("textarea", { rows: 3, id: `model-${key}` });
  const body = el("div", {}, json(params.messages ?? []), el("label.label", { for: `model-${key}` }, "Answer as the model"), area);
  const reply = () => ({ role: "assistant", content: { type: "text", text: area.value }, model: "a person at the console", stopReason: "endTurn" });
  return shown(key, "The server asks a model", params.systemPrompt ?? "", body, place, signal, {
    Answer: () => JSON.stringify(reply()),
  });
}

function askRoots(key, place, signal) {
  const area = el("textarea", { rows: 2, id: `roots-${key}`, placeholder: "file:///home/me/project" });
  const body = el("div", {}, el("label.label", { for: `roots-${key}` }, "URIs, one per line"), area);
  const roots = () => area.value.split("\n").map((line) => line.trim()).filter(Boolean).map((uri) => ({ uri }));
  return shown(key, "The server asks for directories", "", body, place, signal, { Answer: () => JSON.stringify({ roots: roots() }) });
}

// Shows a question and moves the focus to it. Enter presses the first button, unless each has to be chosen.
function shown(key, heading, message, body, place, signal, actions, hasDefault = true) {
  return new Promise((resolve, reject) => {
    const [first] = Object.values(actions);
    const buttons = Object.entries(actions).map(([label, act], number) => el(number ? "button" : "button.primary",
      number || !hasDefault ? { type: "button", onclick: () => settle(act) } : { type: "submit" }, label));
    const title = el("h4", { tabindex: -1 }, heading);
    const form = el("form.question", { "aria-label": heading, novalidate: true, "data-key": key },
      title, message ? el("p.asked", {}, message) : null, body, el("div.buttons", {}, ...buttons));
    const settle = (act) => {
      try {
        const answer = act();
        form.remove();
        resolve(answer);
      } catch (error) {
        if (!(error instanceof FieldError)) throw error;
        error.input?.focus();
      }
    };
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      if (hasDefault) settle(first);
    });
    signal.addEventListener("abort", () => {
      form.remove();
      reject(new DOMException("cancelled", "AbortError"));
    });
    place.append(form);
    (form.querySelector("textarea, input:not(.include), select, a") ?? (hasDefault ? buttons[0] : title)).focus();
    form.scrollIntoView({ block: "nearest" });
  });
}
