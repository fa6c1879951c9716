// Results of calls: text, images, audio and JSON.

import { bytes, el, given } from "./dom.js";
import { parse, pretty } from "./json.js";

const IMAGE = /^image\/(png|jpeg|gif|webp|avif|bmp|svg\+xml)$/;
const AUDIO = /^audio\/[a-z0-9.+-]+$/;
const BASE64 = /^[A-Za-z0-9+/=\s]*$/;

export function contentBlock(block) {
  switch (block?.type) {
    case "text": return el("pre.text", { tabindex: 0 }, block.text);
    case "image": return picture(block);
    case "audio": return sound(block);
    case "resource": return resourceContent(block.resource);
    case "resource_link": return link(block);
    default: return json(block);
  }
}

export function json(value) {
  return el("pre.code", { tabindex: 0 }, pretty(value) ?? "");
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
  if (typeof resource?.text === "string") return el("div", {}, head, el("pre.text", { tabindex: 0 }, resource.text));
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
    parts.push(...blocks.map(contentBlock));
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
  const messages = (result.messages ?? []).map((message) =>
    el("div.message", {}, el("h4", {}, message.role), contentBlock(message.content)));
  return [result.description ? el("p", {}, result.description) : null, ...messages];
}

export function readResult(result) {
  return (result.contents ?? []).map(resourceContent);
}

export function failure(error) {
  const code = error.code === undefined ? "" : ` (${error.code})`;
  const parts = [el("p.failure", {}, `${error.message}${code}`)];
  if (error.data !== undefined) parts.push(json(error.data));
  return parts;
}
