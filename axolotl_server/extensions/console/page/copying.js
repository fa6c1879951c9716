// Buttons that copy a call as a command or as a test.

import { el, replace } from "./dom.js";
import { SNIPPETS, snippetNames } from "./snippets.js";

// `read` returns the arguments as JSON text, or null if there are none that could be copied.
export function copyLine(feature, server, read) {
  const note = el("span.quiet", { role: "status" });
  const fallback = el("div");
  const copy = async (name) => {
    const text = read();
    if (text === null) return;
    const snippet = SNIPPETS[name](feature, text, server);
    replace(fallback);
    try {
      await navigator.clipboard.writeText(snippet);
      note.textContent = "Copied.";
    } catch {
      note.textContent = "The browser does not allow copying. Select the text:";
      replace(fallback, el("pre.code", { tabindex: 0 }, snippet));
    }
  };
  const buttons = snippetNames(server).map((name) => el("button.small", { type: "button", "aria-label": `Copy as ${name}`, onclick: () => copy(name) }, name));
  return el("div.copy", {}, el("div.line", {}, el("span.quiet", {}, "Copy as"), ...buttons, note), fallback);
}
