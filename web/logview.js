// The view of a log: it follows, pauses, searches, filters and selects, at any length of the log.

import { clock, count, el } from "./dom.js";
import { showLine } from "./linedetails.js";
import { segments } from "./lines.js";
import { LogTools } from "./logtools.js";
import { Rows } from "./rows.js";

/** @import { Segment } from "./lines.js" */
/** @import { LogModel } from "./models.js" */

const NARROW = 640; // px: below this width lines wrap, and times are shown in a line's details only
// Characters that take two cells of a fixed-width font: CJK, Hangul, full-width forms, and emoji as surrogate pairs.
const WIDE = new RegExp(
  "[\\u1100-\\u115f\\u2e80-\\ua4cf\\uac00-\\ud7a3\\uf900-\\ufaff\\ufe30-\\ufe6f\\uff00-\\uff60\\uffe0-\\uffe6]" +
    "|[\\ud83c-\\ud83e][\\udc00-\\udfff]",
  "g",
);
const LEVEL_SIGNS = { error: "E", warn: "W", info: "I", debug: "D" };
const ANNOUNCE_MS = 3_000;

/** The view of a log. */
export class LogView {
  /** @param {LogModel} model */
  constructor(model) {
    this.model = model;
    this.wraps = matchMedia(`(max-width: ${NARROW}px)`).matches;
    this.follows = true;
    /** @type {number | null} the number of the first line that is held back */
    this.pausedAt = null;
    /** @type {number | null} the number of the selected line */
    this.active = null;
    this.lastTop = 0;
    this.rowHeight = 0;
    this.columns = 0;
    this.width = 0;
    /** @type {number | null} */
    this.frame = null;
    /** @type {number | undefined} */
    this.speaking = undefined;
    this.sizes = new ResizeObserver(() => this._resized());
    /** @type {HTMLDivElement} */
    this.viewport = el("div", {
      class: "log",
      tabindex: "0",
      role: "listbox",
      "aria-label": `Lines of ${model.title}`,
      onscroll: () => this._scrolled(),
      onkeydown: (event) => this._key(event),
      onclick: (event) => this._clicked(event),
      // Stop following before the browser scrolls, so that no new line scrolls back. A log that fits cannot scroll.
      onwheel: (event) => event.deltaY < 0 && this.viewport.scrollTop > 0 && this.setFollows(false),
    });
    this.rows = new Rows(this.viewport, {
      fill: (row, index) => this._fill(row, model.filter.shown[index]),
      key: (index) => model.filter.shown[index],
    });
    this.tools = new LogTools(this);
    this.toEnd = el("button", { class: "to-end", type: "button", hidden: true, onclick: () => this.resume() });
    this.empty = el("p", { class: "empty" });
    this.spoken = el("div", { class: "spoken", role: "log", "aria-live": "off" });
    this.element = el(
      "section",
      { class: "log-view", "aria-label": model.title },
      el("h1", { class: "visually-hidden" }, `Log ${model.title}`),
      this.tools.element,
      el("div", { class: "log-frame" }, this.viewport, this.empty, this.toEnd),
      this.spoken,
    );
    this.spokenUntil = model.log.end;
  }

  attach() {
    // An element outside the document loses its scroll position.
    if (!this.follows) this.viewport.scrollTop = this.lastTop;
    this.sizes.observe(this.viewport);
    this.model.onchange = () => this.schedule();
    this.speaking = setInterval(() => this._speak(), ANNOUNCE_MS);
    this.schedule();
  }

  detach() {
    this.sizes.disconnect();
    this.model.onchange = () => {};
    clearInterval(this.speaking);
  }

  /** Update at the next frame. */
  schedule() {
    this.frame ??= requestAnimationFrame(() => {
      this.frame = null;
      this.update();
    });
  }

  /** Show the lines that are new. */
  update() {
    const top = this.viewport.scrollTop;
    const first = this._numberAt(top);
    const hidden = first === undefined ? 0 : top - this._top(first);
    this._arrange();
    if (this.follows) this._toEnd();
    else if (first !== undefined) this._scrollTo(this._top(first) + hidden);
    this._updateState();
  }

  /** Filter new lines, and render the rows at their places. */
  _arrange() {
    const { filter } = this.model;
    const { heights } = this.rows;
    heights.cut(filter.update(this.pausedAt ?? this.model.log.end));
    for (let index = heights.ends.length; index < filter.shown.length; index++) {
      heights.push(this._height(filter.shown[index]));
    }
    this.rows.render();
  }

  /**
   * Measure all lines again, after a change of the filter or the width. The line in the middle keeps its position.
   * @param {{ refilter?: boolean }} [options] without `refilter`, the same lines are shown
   */
  renew({ refilter = true } = {}) {
    const middle = this._numberAt(this.viewport.scrollTop + this.viewport.clientHeight / 2);
    if (refilter) this.model.filter.reset();
    this.rows.heights.cut(0);
    this.rows.invalidate();
    this._measure();
    this._arrange();
    if (!this.follows && middle !== undefined) this._center(middle);
    this.update();
  }

  /** @param {boolean} follows */
  setFollows(follows) {
    this.follows = follows;
    if (follows) this.update();
    else this._updateState();
  }

  /** @param {boolean} paused */
  setPaused(paused) {
    this.pausedAt = paused ? this.model.log.end : null;
    this.update();
  }

  /** @param {boolean} wraps */
  setWraps(wraps) {
    this.wraps = wraps;
    this.renew({ refilter: false });
  }

  /** End a pause and follow. */
  resume() {
    this.pausedAt = null;
    this.setFollows(true);
    this.viewport.focus({ preventScroll: true });
  }

  /**
   * Select the next or the previous match.
   * @param {1 | -1} step
   */
  find(step) {
    const { filter } = this.model;
    const { matches } = filter;
    if (!matches.length) return;
    const here = this.active ?? this._numberAt(this.viewport.scrollTop) ?? 0;
    let place = filter.place(matches, here);
    if (step < 0) place -= 1;
    else if (matches[place] === here) place += 1;
    // At the end of the log, a search begins with the newest match.
    if (this.active === null && (step < 0 || this.follows)) place = matches.length - 1;
    this.activate(matches[(place + matches.length) % matches.length], { center: true });
  }

  /**
   * Select a line.
   * @param {number} number
   * @param {{ center?: boolean }} [options]
   */
  activate(number, { center = false } = {}) {
    const before = this.active;
    this.active = number;
    this.follows = false;
    if (center) this._center(number);
    else this._scrollIntoView(number);
    this.rows.render();
    for (const one of [before, number]) this._mark(one);
    this._updateState();
  }

  /** Select no line. */
  deactivate() {
    const before = this.active;
    this.active = null;
    this._mark(before);
    this.viewport.removeAttribute("aria-activedescendant");
  }

  /** @param {KeyboardEvent} event */
  _key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (this._move(event.key) || this._act(event.key)) event.preventDefault();
  }

  /**
   * Move the selection by a key. Returns false for a key that does not move it.
   * @param {string} key
   */
  _move(key) {
    const { filter } = this.model;
    const { shown } = filter;
    if (!shown.length) return false;
    const page = Math.max(1, Math.floor(this.viewport.clientHeight / this.rowHeight) - 1);
    const at =
      this.active === null ? this.rows.heights.at(this.viewport.scrollTop) - 1 : filter.place(shown, this.active);
    const targets = new Map([
      ["ArrowDown", at + 1],
      ["j", at + 1],
      ["ArrowUp", at - 1],
      ["k", at - 1],
      ["PageDown", at + page],
      ["PageUp", at - page],
      ["Home", 0],
    ]);
    const target = targets.get(key);
    if (target === undefined) return false;
    this.activate(shown[Math.min(Math.max(target, 0), shown.length - 1)]);
    return true;
  }

  /**
   * Perform the action of a key. Returns false for a key without an action.
   * @param {string} key
   */
  _act(key) {
    const actions = new Map([
      ["End", () => this.resume()],
      [" ", () => this.setPaused(this.pausedAt === null)],
      ["f", () => this.resume()],
      ["/", () => this.tools.focus()],
      ["n", () => this.find(1)],
      ["N", () => this.find(-1)],
      ["w", () => this.setWraps(!this.wraps)],
      ["Enter", () => this.active !== null && showLine(this.model.log.line(this.active))],
      ["Escape", () => this.deactivate()],
    ]);
    const action = actions.get(key);
    action?.();
    return action !== undefined;
  }

  /** @param {MouseEvent} event */
  _clicked(event) {
    const row = event.target instanceof Element ? event.target.closest(".row") : null;
    if (!(row instanceof HTMLElement) || String(getSelection())) return;
    const number = Number(row.dataset.number);
    if (number === this.active) showLine(this.model.log.line(number));
    else this.activate(number);
  }

  _scrolled() {
    const { viewport } = this;
    const isAtEnd = viewport.scrollTop + viewport.clientHeight >= this.rows.heights.total - 2;
    const isOurs = viewport.scrollTop === this.lastTop; // the event comes late: the user may have scrolled since
    if (viewport.scrollTop < this.lastTop - 1 && !isAtEnd) this.follows = false;
    else if (isAtEnd && !isOurs && this.pausedAt === null && !this.follows && this.active === null) this.follows = true;
    this.lastTop = viewport.scrollTop;
    this.rows.render();
    this._mark(this.active);
    this._updateState();
  }

  _resized() {
    if (this.viewport.clientWidth === this.width) this.schedule();
    else this.renew({ refilter: false });
  }

  /** Measure the height of a line and how many characters fit into its width. */
  _measure() {
    const text = el("span", { class: "text" }, "0".repeat(10));
    const probe = el(
      "div",
      { class: "row" },
      el("span", { class: "sign" }),
      el("time", { class: "time" }, "00:00:00.000"),
      text,
    );
    this.viewport.classList.toggle("wraps", this.wraps);
    this.rows.canvas.append(probe);
    const range = document.createRange();
    range.selectNodeContents(text);
    this.rowHeight = probe.getBoundingClientRect().height;
    const cell = range.getBoundingClientRect().width / 10;
    this.columns = Math.max(10, Math.floor((text.getBoundingClientRect().width + 0.5) / cell));
    this.width = this.viewport.clientWidth;
    probe.remove();
  }

  /** @param {number} number */
  _height(number) {
    if (!this.rowHeight) this._measure();
    if (!this.wraps) return this.rowHeight;
    const { text } = this.model.log.line(number);
    // An emoji has length two already.
    const extra = text.match(WIDE)?.filter((one) => one.length === 1).length ?? 0;
    const cells = this._prefix(number).length + text.length + extra;
    return this.rowHeight * Math.max(1, Math.ceil(cells / this.columns));
  }

  /**
   * Return the part of the topic that a line of a pattern begins with, or an empty string.
   * @param {number} number
   */
  _prefix(number) {
    const { topic } = this.model.log.line(number);
    return this.model.isPattern && topic ? `${this.model.shortTopic(topic)} ` : "";
  }

  /**
   * @param {HTMLElement} row
   * @param {number} number
   */
  _fill(row, number) {
    const line = this.model.log.line(number);
    row.dataset.number = String(number);
    row.className = `row ${line.event ? "" : "note"} ${line.level ?? ""} ${line.stream ?? ""}`;
    row.id = `line-${number}`;
    row.setAttribute("aria-setsize", "-1");
    const prefix = this._prefix(number);
    row.replaceChildren(
      el("span", { class: "sign", title: line.level }, line.level ? LEVEL_SIGNS[line.level] : ""),
      el("time", { class: "time" }, clock(line.at, { milliseconds: true })),
      el(
        "span",
        { class: "text" },
        prefix && el("span", { class: "from" }, prefix),
        segments(line, this.model.filter.query).map(segmentElement),
      ),
    );
    this._mark(number, row);
  }

  /**
   * Show on a row whether it is selected.
   * @param {number | null} number
   * @param {HTMLElement} [row]
   */
  _mark(number, row = number === null ? undefined : this.rows.rendered.get(number)) {
    if (number === null || !row) return;
    const isActive = number === this.active;
    row.setAttribute("aria-selected", String(isActive));
    if (isActive) this.viewport.setAttribute("aria-activedescendant", row.id);
  }

  /**
   * Return the number of the line at a distance from the top, or undefined in an empty log.
   * @param {number} distance
   * @returns {number | undefined}
   */
  _numberAt(distance) {
    return this.model.filter.shown[this.rows.heights.at(distance)];
  }

  /**
   * Return the index of a shown line, or of the next one.
   * @param {number} number
   */
  _index(number) {
    return this.model.filter.place(this.model.filter.shown, number);
  }

  /**
   * Return where a shown line begins.
   * @param {number} number
   */
  _top(number) {
    return this.rows.heights.top(this._index(number));
  }

  /** @param {number} number */
  _center(number) {
    this._scrollTo(this._top(number) - this.viewport.clientHeight / 2);
  }

  /** @param {number} number */
  _scrollIntoView(number) {
    const index = this._index(number);
    const { heights } = this.rows;
    const { scrollTop, clientHeight } = this.viewport;
    this._scrollTo(Math.max(Math.min(scrollTop, heights.top(index)), heights.ends[index] - clientHeight));
  }

  _toEnd() {
    this._scrollTo(this.rows.heights.total);
  }

  /** @param {number} top */
  _scrollTo(top) {
    if (top !== this.viewport.scrollTop) this.viewport.scrollTop = top;
    this.lastTop = this.viewport.scrollTop;
    this.rows.render();
  }

  /** Show the state of the view in its button, its empty text and the toolbar. */
  _updateState() {
    const { log, filter } = this.model;
    const held = this.pausedAt === null ? 0 : log.end - this.pausedAt;
    const isBehind = !this.follows || this.pausedAt !== null;
    this.toEnd.hidden = !isBehind || filter.shown.length === 0;
    this.toEnd.textContent = this.pausedAt === null ? "↓ Follow" : `Paused · ${count(held, "new line")}`;
    this.empty.hidden = filter.shown.length > 0;
    this.empty.textContent = log.lines.length ? "No lines match." : this.model.emptyText;
    this.tools.update();
  }

  /** Announce the last new line to screen readers, and how many came before it. */
  _speak() {
    const { log } = this.model;
    if (this.spoken.getAttribute("aria-live") === "polite" && log.end > this.spokenUntil) {
      const last = log.line(log.end - 1);
      const more = log.end - this.spokenUntil - 1;
      this.spoken.replaceChildren(el("p", {}, more ? `${count(more, "line")}, then: ` : "", last.text));
    }
    this.spokenUntil = log.end;
  }
}

/** @param {Segment} segment */
function segmentElement({ text, part, isMatch }) {
  if (!part && !isMatch) return text;
  const piece = el(isMatch ? "mark" : "span", { class: part?.classes || null }, text);
  if (part?.color) piece.style.color = part.color;
  if (part?.background) piece.style.background = part.background;
  return piece;
}
