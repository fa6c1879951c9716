// Tabs: one button for each section with `data-tab`, of which one is shown. A new section is a new tab. A section with
// `data-panel` has one only if the server has that panel: the function that this returns takes the panels.

import { el } from "./dom.js";

const STEPS = { ArrowRight: 1, ArrowLeft: -1 };

export function makeTabs(list, sections) {
  const tabs = sections.map((section) => el("button.tab", {
    type: "button", role: "tab", id: `${section.id}-tab`, "aria-controls": section.id, onclick: () => show(section),
  }, section.dataset.tab));
  const show = (chosen) => sections.forEach((section, place) => {
    const isChosen = section === chosen;
    section.hidden = !isChosen;
    tabs[place].setAttribute("aria-selected", String(isChosen));
    tabs[place].tabIndex = isChosen ? 0 : -1;
    if (isChosen) section.dispatchEvent(new Event("shown"));
  });
  list.addEventListener("keydown", (event) => {
    const place = tabs.indexOf(event.target);
    if (place < 0 || !STEPS[event.key]) return;
    const shown = tabs.filter((tab) => !tab.hidden);
    const next = tabs.indexOf(shown[(shown.indexOf(event.target) + STEPS[event.key] + shown.length) % shown.length]);
    show(sections[next]);
    tabs[next].focus();
    event.preventDefault();
  });
  sections.forEach((section) => section.setAttribute("aria-labelledby", `${section.id}-tab`));
  list.append(...tabs);
  show(sections[0]);
  return (panels) => sections.forEach((section, place) => {
    const { panel } = section.dataset;
    tabs[place].hidden = panel !== undefined && !panels.includes(panel);
    if (tabs[place].hidden && !section.hidden) show(sections[0]);
  });
}
