// Calls as commands and as a test, with placeholders for sensitive values.

import { parse } from "./json.js";
import { concealed, placeholderFor } from "./sensitive.js";
import { isObject } from "./schema.js";

// Each takes (feature, JSON text of the arguments, {protocol, target, principal, signedIn}) and returns a text.
export const SNIPPETS = { curl: curlCommand, "axolotl call": cliCommand, pytest: pythonTest };

// Only curl works for a container without a name, and a test imports the container.
export function snippetNames({ target }) {
  return Object.keys(SNIPPETS).filter((name) => name === "curl" || (name === "pytest" ? target?.attribute : target));
}

function shownArguments(feature, text) {
  return concealed(parse(text), feature.schema, placeholderFor) ?? {};
}

function curlCommand(feature, text, { client, signedIn }) {
  const call = feature.request(JSON.stringify(shownArguments(feature, text)));
  const { url, headers, body } = client.posted(call.method, call.params, call);
  const lines = [`curl -sS ${quoted(url)}`, ...Object.entries(headers).map(([name, value]) => `-H ${quoted(`${name}: ${value}`)}`)];
  if (signedIn) lines.push('-H "Authorization: Bearer $AXOLOTL_TOKEN"');
  return [...lines, `-d ${quoted(body)}`].join(" \\\n  ");
}

const COMMANDS = { tool: "call", prompt: "prompt", resource: "read", template: "read" };

function cliCommand(feature, text, { target, principal }) {
  const given = shownArguments(feature, text);
  const words = ["axolotl", COMMANDS[feature.kind], quoted(target.name), quoted(feature.uri?.(given) ?? feature.name)];
  if (!feature.uri && Object.keys(given).length) words.push(quoted(JSON.stringify(given)));
  if (principal.subject !== "anonymous") words.push("--as", quoted(JSON.stringify(filled(principal))));
  return words.join(" ");
}

function pythonTest(feature, text, { target, principal }) {
  const given = shownArguments(feature, text);
  const [top] = target.attribute.split(".", 1);
  const named = principal.subject !== "anonymous";
  const container = target.is_called ? `${target.attribute}()` : target.attribute;
  const asPrincipal = named ? `, principal=${pythonPrincipal(principal)}` : "";
  const imports = [named ? "from axolotl_core import Principal" : null, "from axolotl_server import connect"].filter(Boolean);
  const name = (feature.identifier ?? feature.name).toLowerCase().replace(/[^a-z0-9]+/g, "_").replace(/^_+|_+$/g, "");
  return [
    "import pytest", `from ${target.module} import ${top}`, "", ...imports, "", "",
    "@pytest.mark.asyncio", `async def test_${name || "call"}() -> None:`,
    `    async with connect(${container}${asPrincipal}) as client:`,
    ...PYTHON_CALLS[feature.kind](feature, given), "",
  ].join("\n");
}

const PYTHON_CALLS = {
  tool: ({ name }, given) => [`        answer = await client.call(${python(name)}, ${python(given)})`, "    assert not answer.is_error, answer.text"],
  prompt: ({ name }, given) => [`        answer = await client.get_prompt(${python(name)}, ${python(given)})`, "    assert answer.messages"],
  resource: ({ uri }, given) => [`        answer = await client.read_resource(${python(uri(given))})`, "    assert answer.contents"],
};
PYTHON_CALLS.template = PYTHON_CALLS.resource;

function filled(principal) {
  return Object.fromEntries(Object.entries(principal).filter(([, value]) => value !== null && value.length));
}

function pythonPrincipal({ subject, ...rest }) {
  const options = Object.entries(filled(rest)).map(([name, value]) => `${name}=${Array.isArray(value) ? `frozenset(${python(value)})` : python(value)}`);
  return `Principal(${[python(subject), ...options].join(", ")})`;
}

// A JSON value as a literal of Python, whose strings and numbers look the same.
function python(value) {
  if (value === null) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (Array.isArray(value)) return `[${value.map(python).join(", ")}]`;
  if (isObject(value)) return `{${Object.entries(value).map(([key, one]) => `${JSON.stringify(key)}: ${python(one)}`).join(", ")}}`;
  return JSON.stringify(value);
}

// A word of a POSIX shell.
function quoted(word) {
  return /^[A-Za-z0-9_@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}
