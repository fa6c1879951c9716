// Results of calls: text, images, audio and JSON.

import { download, el, given } from "./dom.js";
import { parse, pretty } from "./json.js";
import { bytes } from "./units.js";

const IMAGE = /^image\/(png|jpeg|gif|webp|avif|bmp|svg\+xml)$/;
const AUDIO = /^audio\/[a-z0-9.+-]+$/;
const BASE64 = /^[A-Za-z0-9+/=\s]*$/;
const MAX_SHOWN = 100000, MAX_BLOCKS = 100;

export function contentBlock(block) {
  switch (block?.type) {
    case "text": return shownText("pre.text", block.text, "result.txt");
    case "image": return picture(block);
    case "audio": return sound(block);
    case "resource": return resourceContent(block.resource);
    case "resource_link": return link(block);
    default: return json(block);
  }
}

export function json(value) {
  return shownText("pre.code", pretty(value) ?? "", "result.json");
}

// Shows the beginning of a long text, with a button that saves all of it.
function shownText(what, text, file) {
  const whole = String(text);
  if (whole.length <= MAX_SHOWN) return el(what, { tabindex: 0 }, whole);
  const save = el("button.small", { type: "button", onclick: () => download(file, whole, "text/plain") }, `Download all ${bytes(new Blob([whole]).size)}`);
  return el("div", {}, el(what, { tabindex: 0 }, `${whole.slice(0, MAX_SHOWN)}…`), el("p.line.quiet", {}, `Only the first ${bytes(MAX_SHOWN)} are shown. `, save));
}

// Shows the first blocks of a list.
function blocksOf(list, show) {
  const more = list.length - MAX_BLOCKS;
  return [...list.slice(0, MAX_BLOCKS).map(show), more > 0 ? el("p.quiet", {}, `and ${more} more; see the full result`) : null];
}

function picture({ data, mimeType }) {
  if (!IMAGE.test(mimeType ?? "") || !BASE64.test(data ?? "")) return el("p.quiet", {}, `This image cannot be displayed (${mimeType})`);
  const image = el("img", { src: `data:${mimeType};base64,${data}`, alt: `Image, ${mimeType}` });
  return el("figure", {}, image, el("figcaption.quiet", {}, `${mimeType}, ${bytes(Math.floor(data.length * 0.75))}`));
}

function sound({ data, mimeType }) {
  if (!AUDIO.test(mimeType ?? "") || !BASE64.test(data ?? "")) return el("p.quiet", {}, `This audio cannot be played (${mimeType})`);
  return el("audio", { controls: true, src: `data:${mimeType};base64,${data}` });
}

export function resourceContent(resource) {
  const type = resource?.mimeType ?? "unknown type";
  const head = el("p.quiet", {}, given(resource?.uri ?? ""), ` (${type})`);
  if (typeof resource?.text === "string") return el("div", {}, head, shownText("pre.text", resource.text, "resource.txt"));
  const blob = resource?.blob ?? "";
  if (IMAGE.test(type)) return el("div", {}, head, picture({ data: blob, mimeType: type }));
  return el("div", {}, head, el("p", {}, `${bytes(Math.floor(blob.length * 0.75))} of data`));
}

function link({ uri, name, description, mimeType }) {
  return el("p", {}, "Link to ", given(uri ?? ""), name ? el("span", {}, " – ", given(name)) : null,
    el("span.quiet", {}, [description, mimeType].filter(Boolean).map((text) => ` ${text}`).join(",")));
}

export function toolResult(result) {
  const parts = [];
  const structured = result.structuredContent;
  const blocks = result.content ?? [];
  const repeats = structured !== undefined && blocks.length === 1 && blocks[0].type === "text" && isSame(blocks[0].text, structured);
  if (structured !== undefined) parts.push(el("h4", {}, "Structured content"), json(structured));
  if (blocks.length && !repeats) {
    if (structured !== undefined) parts.push(el("h4", {}, "Content"));
    parts.push(...blocksOf(blocks, contentBlock));
  }
  if (!parts.length) parts.push(el("p.quiet", {}, "The result is empty."));
  return parts;
}

function isSame(text, structured) {
  try {
    return JSON.stringify(parse(text)) === JSON.stringify(structured);
  } catch {
    return false;
  }
}

export function promptResult(result) {
  const messages = blocksOf(result.messages ?? [], (message) =>
    el("div.message", {}, el("h4", {}, message.role), contentBlock(message.content)));
  return [result.description ? el("p", {}, result.description) : null, ...messages];
}

export function readResult(result) {
  return blocksOf(result.contents ?? [], resourceContent);
}

const EXPLANATIONS = {
  401: "The token is missing, expired or not accepted. Sign in again.",
  403: "The token is valid, but does not allow this call.",
  429: "Too many calls. Try again later.",
};

export function failure(error) {
  const code = error.code === undefined ? "" : ` (${error.code})`;
  const parts = [el("p.failure", {}, `${error.message}${code}`)];
  if (EXPLANATIONS[error.status]) parts.push(el("p.quiet", {}, `HTTP ${error.status}. ${EXPLANATIONS[error.status]}`));
  if (error.data !== undefined) parts.push(json(error.data));
  return parts;
}
