// The toolbar of a log: search, levels, wrapping, pausing, following, saving.

import { clock, count, el } from "./dom.js";
import { showLine } from "./linedetails.js";
import { LEVELS } from "./lines.js";

/** @import { Level } from "./lines.js" */
/** @import { LogView } from "./logview.js" */

const TYPING_MS = 90;
/** The files of a container that its program and crunch-run write, as "Main logs" of Workbench. */
const MAIN_FILES = ["crunch-run", "stderr", "stdout"];
const LEVEL_LABELS = { error: "Errors", warn: "Warnings", info: "Info", debug: "Debug" };

/** The toolbar of a log view. */
export class LogTools {
  /** @param {LogView} view */
  constructor(view) {
    this.view = view;
    /** @type {number | undefined} */
    this.typing = undefined;
    this.search = el("input", {
      type: "search",
      placeholder: "Search",
      "aria-label": "Search in the log",
      autocomplete: "off",
      spellcheck: "false",
      oninput: () => this._typed(),
      onkeydown: (event) => this._key(event),
    });
    this.found = el("span", { class: "found", role: "status" });
    this.only = toggle("Only", "Show only lines that match", () => this._toggleOnly());
    this.levels = LEVELS.map((level) => {
      const label = `Show ${LEVEL_LABELS[level].toLowerCase()}`;
      return toggle(LEVEL_LABELS[level], label, () => this._toggleLevel(level), level);
    });
    this.files = el("select", { "aria-label": "Show files", onchange: () => this._chooseFiles() });
    this.wrap = toggle("Wrap", "Wrap long lines", () => view.setWraps(!view.wraps));
    this.aloud = toggle("Read aloud", "Announce new lines to screen readers", () => this._toggleAloud());
    this.pause = toggle("Pause", "Hold new lines back", () => view.setPaused(view.pausedAt === null));
    this.follow = toggle("Follow", "Keep the newest line in view", () =>
      view.follows ? view.setFollows(false) : view.resume(),
    );
    this.lines = el("span", { class: "lines" });
    this.steps = [this._step("Previous match", "↑", -1), this._step("Next match", "↓", 1), this.only];
    this.element = el(
      "div",
      { class: "tools", role: "toolbar", "aria-label": "Log" },
      el("div", { class: "search" }, this.search, this.found, this.steps),
      el("div", { class: "group", role: "group", "aria-label": "Lines shown" }, this.files, this.levels),
      el("div", { class: "group end" }, this.lines, this._menu(), this.wrap, this.pause, this.follow),
    );
  }

  /** Focus the search field. */
  focus() {
    this.search.focus();
    this.search.select();
  }

  /** Show the state of the view. */
  update() {
    const { view } = this;
    const { log, filter } = view.model;
    const place = view.active === null ? -1 : filter.matches.indexOf(view.active);
    const total = count(filter.matches.length, "match", "matches");
    setText(this.found, filter.query ? (place < 0 ? total : `${place + 1} of ${filter.matches.length}`) : "");
    for (const one of this.steps) one.hidden = !filter.query;
    this._offerFiles([...log.files].sort());
    const lines = count(log.lines.length, "line");
    setText(this.lines, filter.isActive ? `${filter.shown.length.toLocaleString("en")} of ${lines}` : lines);
    press(this.wrap, view.wraps);
    press(this.pause, view.pausedAt !== null);
    press(this.follow, view.follows && view.pausedAt === null);
  }

  /**
   * Offer to choose among the files of a container that have come.
   * @param {string[]} names
   */
  _offerFiles(names) {
    const { files } = this;
    files.hidden = names.length < 2;
    if (files.options.length === names.length + 2) return;
    const { selectedIndex, value } = files;
    files.replaceChildren(...["All files", "Main files", ...names].map((name) => el("option", {}, name)));
    if (selectedIndex < 2) files.selectedIndex = Math.max(selectedIndex, 0);
    else files.value = value;
  }

  _chooseFiles() {
    const { selectedIndex, value } = this.files;
    this.view.model.filter.files = selectedIndex > 1 ? [value] : selectedIndex === 1 ? MAIN_FILES : null;
    this.view.renew();
  }

  /**
   * @param {string} label
   * @param {string} sign
   * @param {1 | -1} by
   */
  _step(label, sign, by) {
    const onclick = () => this.view.find(by);
    return el("button", { type: "button", class: "icon", "aria-label": label, title: label, onclick }, sign);
  }

  _menu() {
    const save = el(
      "button",
      { type: "button", title: "Save the lines as a file", onclick: () => this._save() },
      "Save as file",
    );
    const newest = el(
      "button",
      { type: "button", title: "Show the newest line, and the command that traces it", onclick: () => this._newest() },
      "Newest line",
    );
    return el(
      "details",
      { class: "menu" },
      el("summary", { "aria-label": "More", title: "More" }, "⋯"),
      el("div", {}, this.aloud, newest, save),
    );
  }

  _typed() {
    clearTimeout(this.typing);
    this.typing = setTimeout(() => this._searchNow(), TYPING_MS);
  }

  _searchNow() {
    clearTimeout(this.typing);
    const { view } = this;
    const query = this.search.value.toLowerCase();
    if (query === view.model.filter.query) return;
    view.model.filter.query = query;
    view.deactivate();
    view.renew();
  }

  /** @param {KeyboardEvent} event */
  _key(event) {
    if (event.key === "Enter") {
      this._searchNow();
      this.view.find(event.shiftKey ? -1 : 1);
    } else if (event.key === "Escape") {
      this.search.value = "";
      this._searchNow();
      this.view.viewport.focus({ preventScroll: true });
    } else return;
    event.preventDefault();
  }

  _toggleOnly() {
    const { filter } = this.view.model;
    filter.onlyMatches = !filter.onlyMatches;
    press(this.only, filter.onlyMatches);
    this.view.renew();
  }

  /** @param {Level} level */
  _toggleLevel(level) {
    const { levels } = this.view.model.filter;
    if (!levels.delete(level)) levels.add(level);
    press(this.levels[LEVELS.indexOf(level)], levels.has(level));
    this.view.renew();
  }

  _toggleAloud() {
    const isOn = this.aloud.getAttribute("aria-pressed") === "true";
    press(this.aloud, !isOn);
    this.view.spoken.setAttribute("aria-live", isOn ? "off" : "polite");
  }

  _newest() {
    const { lines } = this.view.model.log;
    showLine(lines.findLast((line) => line.event !== null));
  }

  _save() {
    const { model } = this.view;
    const text = model.filter.shown.map((number) => {
      const line = model.log.line(number);
      const time = line.written || new Date(line.at).toISOString();
      return `${time} ${model.isPattern ? `${line.topic} ` : ""}${line.text}\n`;
    });
    const url = URL.createObjectURL(new Blob(text, { type: "text/plain" }));
    const name = `${model.title.replace(/[^\w.-]+/g, "_")}-${clock(Date.now()).replaceAll(":", "")}.log`;
    el("a", { href: url, download: name }).click();
    setTimeout(() => URL.revokeObjectURL(url), 10_000);
  }
}

/**
 * Return a button that is pressed or not.
 * @param {string} text
 * @param {string} label
 * @param {() => void} onclick
 * @param {Level | ""} [level]
 */
function toggle(text, label, onclick, level = "") {
  const attributes = { type: "button", class: `switch ${level}`, "aria-pressed": "false", title: label, onclick };
  return el("button", { ...attributes, "aria-label": label }, text);
}

/**
 * @param {Element} button
 * @param {boolean} isPressed
 */
function press(button, isPressed) {
  button.setAttribute("aria-pressed", String(isPressed));
}

/**
 * @param {Element} element
 * @param {string} text
 */
function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}
