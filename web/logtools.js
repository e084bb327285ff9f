// What can be done with a log: search, levels, wrapping, pausing, following, saving.

import { clock, count, el } from "./dom.js";
import { LEVELS } from "./lines.js";

const TYPING_MS = 90;
const NAMES = { error: "Errors", warn: "Warnings", info: "Info", debug: "Debug" };

export class LogTools {
  constructor(view) {
    this.view = view;
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
    this.only = this._switch("Only", "Show only lines that match", () => this._only());
    this.levels = LEVELS.map((level) =>
      this._switch(NAMES[level], `Show ${NAMES[level].toLowerCase()}`, () => this._level(level), level),
    );
    this.wrap = this._switch("Wrap", "Wrap long lines", () => view.setWraps(!view.wraps));
    this.aloud = this._switch("Read aloud", "Let a screen reader read new lines", () => this._aloud());
    this.pause = this._switch("Pause", "Hold new lines back", () => view.setPaused(view.pausedAt === null));
    this.follow = this._switch("Follow", "Keep the newest line in sight", () =>
      view.follows ? view.setFollows(false) : view.resume(),
    );
    this.lines = el("span", { class: "lines" });
    const step = (label, sign, by) =>
      el(
        "button",
        { type: "button", class: "icon", "aria-label": label, title: label, onclick: () => view.find(by) },
        sign,
      );
    this.steps = [step("Match before", "↑", -1), step("Next match", "↓", 1), this.only];
    this.element = el(
      "div",
      { class: "tools", role: "toolbar", "aria-label": "Log" },
      el("div", { class: "search" }, this.search, this.found, this.steps),
      el("div", { class: "group", role: "group", "aria-label": "Lines shown" }, this.levels),
      el(
        "div",
        { class: "group end" },
        this.lines,
        el(
          "details",
          { class: "menu" },
          el("summary", { "aria-label": "More", title: "More" }, "⋯"),
          el(
            "div",
            {},
            this.aloud,
            el(
              "button",
              { type: "button", title: "Save the lines as a file", onclick: () => this._save() },
              "Save as file",
            ),
          ),
        ),
        this.wrap,
        this.pause,
        this.follow,
      ),
    );
  }

  focus() {
    this.search.focus();
    this.search.select();
  }

  tell() {
    const { view } = this;
    const { log, selection } = view.model;
    const place = view.active === null ? -1 : selection.matches.indexOf(view.active);
    const total = count(selection.matches.length, "match", "matches");
    set(this.found, selection.query ? (place < 0 ? total : `${place + 1} of ${selection.matches.length}`) : "");
    for (const one of this.steps) one.hidden = !selection.query;
    set(
      this.lines,
      selection.isFiltered
        ? `${selection.shown.length.toLocaleString("en")} of ${count(log.lines.length, "line")}`
        : count(log.lines.length, "line"),
    );
    press(this.wrap, view.wraps);
    press(this.pause, view.pausedAt !== null);
    press(this.follow, view.follows && view.pausedAt === null);
  }

  _switch(text, label, onclick, level = "") {
    return el(
      "button",
      { type: "button", class: `switch ${level}`, "aria-pressed": "false", "aria-label": label, title: label, onclick },
      text,
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
    if (query === view.model.selection.query) return;
    view.model.selection.query = query;
    view._deactivate();
    view.renew();
  }

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

  _only() {
    const { selection } = this.view.model;
    selection.onlyMatches = !selection.onlyMatches;
    press(this.only, selection.onlyMatches);
    this.view.renew();
  }

  _level(level) {
    const { levels } = this.view.model.selection;
    if (!levels.delete(level)) levels.add(level);
    press(this.levels[LEVELS.indexOf(level)], levels.has(level));
    this.view.renew();
  }

  _aloud() {
    const isOn = this.aloud.getAttribute("aria-pressed") === "true";
    press(this.aloud, !isOn);
    this.view.spoken.setAttribute("aria-live", isOn ? "off" : "polite");
  }

  _save() {
    const { model } = this.view;
    const text = model.selection.shown.map((number) => {
      const line = model.log.line(number);
      return `${new Date(line.at).toISOString()} ${model.isPattern ? `${line.topic} ` : ""}${line.text}\n`;
    });
    const url = URL.createObjectURL(new Blob(text, { type: "text/plain" }));
    el("a", {
      href: url,
      download: `${model.title.replace(/[^\w.-]+/g, "_")}-${clock(Date.now()).replaceAll(":", "")}.log`,
    }).click();
    setTimeout(() => URL.revokeObjectURL(url), 10_000);
  }
}

function press(button, isPressed) {
  button.setAttribute("aria-pressed", isPressed);
}

function set(element, text) {
  if (element.textContent !== text) element.textContent = text;
}
