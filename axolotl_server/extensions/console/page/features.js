// The features of panels, made from the entries in the server's lists.

import { own } from "./dom.js";
import { parse } from "./json.js";
import { mirroredHeaders } from "./mcp.js";
import { promptResult, readResult, toolResult } from "./results.js";

// A feature is {kind, key, name, title, description, toolset, effects, schema, annotations, verb, render(result),
// request(text) -> call}, and for resources uri(values). `effects` is what the server does with its calls.
export function toolFeature(tool, { tools }) {
  const effects = own(tools, tool.name);
  return {
    kind: "tool", key: `tool ${tool.name}`, name: tool.name, title: tool.title ?? tool.annotations?.title, effects, toolset: effects?.toolset,
    description: tool.description, schema: tool.inputSchema, annotations: tool.annotations, verb: "Call", render: toolResult,
    request: (text, asTask) => ({
      method: "tools/call", name: tool.name, asTask, mirrored: mirroredHeaders(tool.inputSchema, parse(text)),
      params: { name: JSON.stringify(tool.name), arguments: text },
    }),
  };
}

export function promptFeature(prompt, { prompts }, client) {
  const effects = own(prompts, prompt.name);
  const listed = prompt.arguments ?? [];
  const feature = {
    kind: "prompt", key: `prompt ${prompt.name}`, name: prompt.name, title: prompt.title, effects, toolset: effects?.toolset,
    description: prompt.description, verb: "Get", render: promptResult,
    request: (text) => ({ method: "prompts/get", name: prompt.name, params: { name: JSON.stringify(prompt.name), arguments: text } }),
  };
  const reference = { type: "ref/prompt", name: prompt.name };
  const properties = listed.map((one) => [one.name, textual(one, effects, completer(client, feature, reference, one.name))]);
  const required = listed.filter((one) => one.required).map((one) => one.name);
  return Object.assign(feature, { schema: { type: "object", properties: Object.fromEntries(properties), required, additionalProperties: false } });
}

// An argument that is sent as a string: a choice, a text with suggestions, or any text.
function textual({ name, title, description }, effects, suggest) {
  const choices = own(effects?.choices, name);
  const isCompleted = effects?.completed?.includes(name);
  return { type: "string", title, description, ...(choices ? { enum: choices } : isCompleted ? { suggest } : {}) };
}

function completer(client, feature, reference, name) {
  return async (value) => {
    const known = Object.entries(feature.peek?.() ?? {}).filter(([other]) => other !== name).map(([other, text]) => [other, parse(text)]);
    const params = { ref: JSON.stringify(reference), argument: JSON.stringify({ name, value }), context: JSON.stringify({ arguments: Object.fromEntries(known) }) };
    try {
      const { result } = await client.request("completion/complete", params);
      return result.completion?.values ?? [];
    } catch {
      return []; // suggestions are a convenience
    }
  };
}

const SIMPLE_TEMPLATE = /^[^{}]*(\{\w+\}[^{}]*)+$/;

export function resourceFeature(entry, { resources }, client) {
  const { uri, uriTemplate, name, title, description, mimeType } = entry;
  const address = uri ?? uriTemplate;
  const effects = own(resources, address);
  const feature = {
    kind: uri === undefined ? "template" : "resource", key: `resource ${address}`, name: address, identifier: name, title, effects,
    toolset: effects?.toolset, description, mimeType, verb: "Read", render: readResult, uri: () => uri,
    request: (text) => {
      const wanted = feature.uri(parse(text));
      return { method: "resources/read", name: wanted, params: { uri: JSON.stringify(wanted) } };
    },
  };
  const properties = uri === undefined ? variablesOf(feature, client) : {};
  return Object.assign(feature, { schema: { type: "object", properties, required: Object.keys(properties), additionalProperties: false } });
}

// A field for each variable of a template, or one for the URI if the template has operators.
function variablesOf(feature, client) {
  const template = feature.name;
  if (!SIMPLE_TEMPLATE.test(template)) {
    feature.uri = ({ uri }) => uri;
    return { uri: { type: "string", description: `A URI of the form ${template}`, examples: [template] } };
  }
  const names = [...template.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
  const reference = { type: "ref/resource", uri: template };
  feature.uri = (values) => template.replace(/\{(\w+)\}/g, (_, name) => encodeURIComponent(own(values, name) ?? ""));
  return Object.fromEntries(names.map((name) => [name, textual({ name }, feature.effects, completer(client, feature, reference, name))]));
}
