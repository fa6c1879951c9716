// The event stream of the console, which reconnects after a restart of the server.

import { parse } from "./json.js";
import { eventsOf } from "./mcp.js";

const MIN_WAIT = 200, MAX_WAIT = 3000;
const REFUSALS = { 401: "refused", 403: "locked" };

export class Live {
  constructor(access, { onMessage, onState }) {
    this.access = access;
    this.onMessage = onMessage;
    this.onState = onState;
    this.stopping = null;
    this.wake = () => {};
  }

  async run() {
    let wait = MIN_WAIT;
    for (;;) {
      const [state, reason] = await this.listen(() => { wait = MIN_WAIT; });
      this.onState(state, reason);
      await this.pause(wait);
      wait = Math.min(MAX_WAIT, wait * 2);
    }
  }

  // Reconnects, for example with a new token.
  restart() {
    this.stopping?.abort();
    this.wake();
  }

  async listen(onEvent) {
    this.stopping = new AbortController();
    try {
      const options = { headers: this.access.dataHeaders(), signal: this.stopping.signal, cache: "no-store" };
      const response = await fetch("/console/events", options);
      if (REFUSALS[response.status]) return [REFUSALS[response.status], await reasonOf(response)];
      if (!response.ok) return ["away"];
      for await (const data of eventsOf(response)) {
        onEvent();
        this.onState("live");
        this.onMessage(parse(data));
      }
    } catch (error) {
      if (error instanceof SyntaxError) throw error;
    }
    return ["away"];
  }

  pause(milliseconds) {
    return new Promise((resolve) => {
      this.wake = resolve;
      setTimeout(resolve, milliseconds);
    });
  }
}

async function reasonOf(response) {
  try {
    return parse(await response.text()).error.message;
  } catch {
    return `HTTP status ${response.status}`;
  }
}
