// News from the server, as they happen. The stream ends when the server is restarted, and is taken up again.

import { parse } from "./json.js";
import { eventsOf } from "./mcp.js";

const FIRST_WAIT = 200, LONGEST_WAIT = 3000;

export class Live {
  constructor(access, { onMessage, onState }) {
    this.access = access;
    this.onMessage = onMessage;
    this.onState = onState;
    this.stopping = null;
  }

  async run() {
    let wait = FIRST_WAIT;
    for (;;) {
      const state = await this.listen(() => { wait = FIRST_WAIT; });
      this.onState(state);
      await pause(wait);
      wait = Math.min(LONGEST_WAIT, wait * 2);
    }
  }

  // Begins anew, as after a token was given.
  restart() {
    this.stopping?.abort();
  }

  async listen(heard) {
    this.stopping = new AbortController();
    try {
      const options = { headers: this.access.dataHeaders(), signal: this.stopping.signal, cache: "no-store" };
      const response = await fetch("/console/events", options);
      if (response.status === 401) return "refused";
      if (!response.ok) return "away";
      for await (const data of eventsOf(response)) {
        heard();
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
