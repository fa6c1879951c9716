// The event stream of the console, which reconnects after a restart of the server.

import { parse } from "./json.js";
import { eventsOf } from "./mcp.js";

const MIN_WAIT = 200, MAX_WAIT = 3000;

export class Live {
  constructor(access, { onMessage, onState }) {
    this.access = access;
    this.onMessage = onMessage;
    this.onState = onState;
    this.stopping = null;
  }

  async run() {
    let wait = MIN_WAIT;
    for (;;) {
      const state = await this.listen(() => { wait = MIN_WAIT; });
      this.onState(state);
      await pause(wait);
      wait = Math.min(MAX_WAIT, wait * 2);
    }
  }

  // Reconnects, for example with a new token.
  restart() {
    this.stopping?.abort();
  }

  async listen(onEvent) {
    this.stopping = new AbortController();
    try {
      const options = { headers: this.access.dataHeaders(), signal: this.stopping.signal, cache: "no-store" };
      const response = await fetch("/console/events", options);
      if (response.status === 401) return "refused";
      if (response.status === 403) return "locked";
      if (!response.ok) return "away";
      for await (const data of eventsOf(response)) {
        onEvent();
        this.onState("live");
        this.onMessage(parse(data));
      }
    } catch (error) {
      if (error instanceof SyntaxError) throw error;
    }
    return "away";
  }
}

function pause(milliseconds) {
  return new Promise((resolve) => { setTimeout(resolve, milliseconds); });
}
