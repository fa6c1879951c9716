// What a call shows while it runs and when it has ended: progress, log messages, questions and the result.

import { el, replace } from "./dom.js";
import { json } from "./results.js";

const LOG_LINES = 200, LOG_CHARACTERS = 2000;

export class CallView {
  constructor(place, onAsking) {
    this.onAsking = onAsking;
    this.bar = el("progress", { "aria-label": "Progress", hidden: true });
    this.word = el("span.quiet");
    this.lines = el("ol.log", { "aria-label": "Log messages" });
    this.questions = el("div");
    this.answer = el("div.answer");
    replace(place, el("p.progress", { "aria-live": "off" }, this.bar, this.word), this.lines, this.questions, this.answer);
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
    const shown = text.length > LOG_CHARACTERS ? `${text.slice(0, LOG_CHARACTERS)}…` : text;
    this.lines.append(el("li", { "data-level": level }, el("b", {}, level), logger ? ` ${logger}:` : "", ` ${shown}`));
    if (this.lines.children.length > LOG_LINES) this.lines.firstChild.remove();
  }

  // A bar must not move when nothing happens any more.
  end() {
    this.bar.hidden = true;
  }

  outcome(parts, raw) {
    this.answer.classList.toggle("failed", raw === null || raw.isError === true);
    replace(this.answer, ...parts, raw === null ? null : el("details", {}, el("summary", {}, "Full result"), json(raw)));
  }
}
