// An MCP client of the stateless revision. A request is a POST; the answer is JSON or an event stream.

import { own } from "./dom.js";
import { parse } from "./json.js";

export class RequestFailed extends Error {
  constructor(message, { status, code, data } = {}) {
    super(message);
    this.status = status;
    this.code = code;
    this.data = data;
  }
}

let lastRequest = 0;

export class McpClient {
  constructor(access) {
    this.access = access;
    this.protocol = null;
  }

  // The values of `params` are JSON texts; `onNotification` gets the notifications about the request.
  async request(method, params = {}, options = {}) {
    const { onNotification = () => {}, signal, asTask = false, speaks = false } = options;
    lastRequest += 1;
    const { url, headers, body } = this.posted(method, params, options, this.meta(lastRequest, asTask, speaks), lastRequest);
    const sent = { ...this.access.headers(), ...headers };
    const response = await fetch(url, { method: "POST", headers: sent, body, signal, cache: "no-store" });
    return answerOf(await this.messages(response, onNotification), response);
  }

  // What is sent for a request, without the token: {url, headers, body}.
  posted(method, params, { name, mirrored = {} }, meta = this.leastMeta(), number = 1) {
    const members = { ...params, _meta: JSON.stringify(meta) };
    const headers = {
      "Content-Type": "application/json",
      Accept: "application/json, text/event-stream",
      "MCP-Protocol-Version": this.protocol.version,
      "Mcp-Method": method,
      ...(name === undefined ? {} : { "Mcp-Name": headerText(name) }),
      ...Object.fromEntries(Object.entries(mirrored).map(([header, value]) => [header, headerText(value)])),
    };
    const body = `{"jsonrpc":"2.0","id":${number},"method":${JSON.stringify(method)},"params":${written(members)}}`;
    return { url: new URL(this.protocol.endpoint, location.origin).href, headers, body };
  }

  leastMeta() {
    const { version, version_key, capabilities_key } = this.protocol;
    return { [version_key]: version, [capabilities_key]: {} };
  }

  meta(number, asTask, speaks) {
    const { capabilities_key, client_key, log_level_key, tasks_extension } = this.protocol;
    const capabilities = { elicitation: { form: {}, url: {} }, sampling: {}, roots: {} };
    if (asTask) capabilities.extensions = { [tasks_extension]: {} };
    const meta = {
      ...this.leastMeta(),
      [capabilities_key]: capabilities,
      [client_key]: { name: "axolotl-console", version: "1" },
    };
    return speaks ? { ...meta, [log_level_key]: "debug", progressToken: number } : meta;
  }

  // Reads the response; returns its last message.
  async messages(response, onNotification) {
    if (!(response.headers.get("content-type") ?? "").startsWith("text/event-stream")) {
      const text = await response.text();
      return text ? { ...parse(text), size: text.length } : null;
    }
    let last = null;
    for await (const data of eventsOf(response)) {
      const message = parse(data);
      if (message.method !== undefined) onNotification(message);
      else last = { ...message, size: data.length };
    }
    return last;
  }
}

function answerOf(message, response) {
  if (message === null) throw new RequestFailed(`the server sent no answer (HTTP status ${response.status})`, { status: response.status });
  if (message.error) {
    const { code, message: text, data } = message.error;
    throw new RequestFailed(text, { status: response.status, code, data });
  }
  return { result: message.result, size: message.size };
}

function written(members) {
  const texts = Object.entries(members).filter(([, text]) => text !== undefined);
  return `{${texts.map(([name, text]) => `${JSON.stringify(name)}:${text}`).join(",")}}`;
}

// Headers contain visible ASCII; the protocol has an encoding for everything else.
function headerText(value) {
  const text = String(value);
  if (/^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$/.test(text) && !text.startsWith("=?")) return text;
  const bytes = new TextEncoder().encode(text);
  return `=?base64?${btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""))}?=`;
}

// Yields the data of server-sent events.
export async function* eventsOf(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      text += value;
      let end;
      while ((end = text.indexOf("\n\n")) >= 0) {
        const data = text.slice(0, end).split("\n").filter((line) => line.startsWith("data:"));
        text = text.slice(end + 2);
        if (data.length) yield data.map((line) => line.slice(5).replace(/^ /, "")).join("\n");
      }
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

// The arguments that must be repeated in headers, as marked in the schema.
export function mirroredHeaders(schema, values) {
  const found = {};
  for (const [name, one] of Object.entries(schema?.properties ?? {})) {
    const value = own(values, name);
    if (one === null || typeof one !== "object" || value === undefined || value === null) continue;
    if (typeof one["x-mcp-header"] === "string") found[`Mcp-Param-${one["x-mcp-header"]}`] = headerValue(value);
    else Object.assign(found, mirroredHeaders(one, value));
  }
  return found;
}

function headerValue(value) {
  return typeof value === "object" ? JSON.stringify(value) : value;
}
