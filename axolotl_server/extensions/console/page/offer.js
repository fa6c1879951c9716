// The list of features, in groups by kind and tool set, with a filter.

import { el, find, given, replace } from "./dom.js";
import { promptFeature, resourceFeature, toolFeature } from "./features.js";
import { count } from "./units.js";

const LISTS = {
  tools: [["tools/list", "tools", toolFeature, "Tools"]],
  prompts: [["prompts/list", "prompts", promptFeature, "Prompts"]],
  resources: [
    ["resources/list", "resources", resourceFeature, "Resources"],
    ["resources/templates/list", "resourceTemplates", resourceFeature, "Resource templates"],
  ],
};

// Loads all lists of a server; returns [{heading, toolset, features}].
export async function loadGroups(client, state) {
  const groups = [];
  for (const kind of Object.keys(LISTS).filter((one) => state.protocol.offers.includes(one))) {
    for (const [method, member, feature, heading] of LISTS[kind]) {
      const found = (await wholeList(client, method, member)).map((one) => feature(one, state, client));
      const toolsets = [...new Set(found.map((one) => one.toolset ?? null))];
      groups.push(...toolsets.map((toolset) => ({ heading, toolset, features: found.filter((one) => (one.toolset ?? null) === toolset) })));
    }
  }
  return groups;
}

async function wholeList(client, method, member) {
  const found = [];
  for (let cursor; ;) {
    const { result } = await client.request(method, cursor === undefined ? {} : { cursor: JSON.stringify(cursor) });
    found.push(...(result[member] ?? []));
    cursor = result.nextCursor;
    if (cursor === undefined || cursor === null) return found;
  }
}

export class Offer {
  constructor(onChoose) {
    this.onChoose = onChoose;
    this.groups = [];
    this.current = null;
    this.note = "";
    find("#search").addEventListener("input", () => this.show());
  }

  features() {
    return this.groups.flatMap((group) => group.features);
  }

  featureOf(key) {
    return this.features().find((one) => one.key === key);
  }

  // Shows a note instead of features, for example why there are none.
  explain(note) {
    this.groups = [];
    this.note = note;
    this.show();
  }

  fill(groups) {
    this.groups = groups;
    this.note = "The server has no features.";
    this.show();
  }

  mark(key) {
    this.current = key;
    this.show();
  }

  show() {
    const held = document.activeElement?.dataset?.key;
    const words = find("#search").value.toLowerCase().split(/\s+/).filter(Boolean);
    const matches = (one) => words.every((word) => `${one.name} ${one.identifier ?? ""} ${one.title ?? ""} ${one.toolset ?? ""} ${one.description ?? ""}`.toLowerCase().includes(word));
    const parts = this.groups.map((group) => ({ ...group, features: group.features.filter(matches) })).filter(({ features }) => features.length)
      .flatMap((group) => this.part(group));
    replace(find("#offer"), ...(parts.length ? parts : [el("p.empty", {}, words.length && this.groups.length ? "No matches." : this.note)]));
    if (held !== undefined) [...find("#offer").querySelectorAll("button")].find((one) => one.dataset.key === held)?.focus();
  }

  part({ heading, toolset, features }) {
    return [
      el("h2", {}, el("span", {}, heading, toolset ? el("span.toolset", {}, " ", breakable(toolset)) : null), el("span.count", {}, count(features.length))),
      el("ul.plain", {}, ...features.map((one) => el("li", {}, this.entry(one)))),
    ];
  }

  // One line: the name of a tool or prompt, the URI of a resource. The rest is on its panel.
  entry(feature) {
    const isCurrent = this.current === feature.key;
    return el("button.entry.mono", {
      type: "button", "data-key": feature.key, "aria-current": isCurrent ? "true" : undefined, title: feature.title,
      onclick: () => this.onChoose(feature.key),
    }, given(feature.name));
  }
}

// A name that is too long for its line is broken after a separator.
function breakable(name) {
  return el("bdi", {}, ...name.split(/(?<=[_.])/).flatMap((part, place) => (place ? [el("wbr"), part] : [part])));
}
