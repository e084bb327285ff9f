// The view of a log: follow, pause, search, filter, select; fast however long the log is.

import { clock, count, el } from "./dom.js";
import { showLine } from "./linedetails.js";
import { below, pieces } from "./lines.js";
import { LogTools } from "./logtools.js";
import { Rows } from "./rows.js";

const NARROW = 640; // px: below it lines wrap, and times are with a line's details
const WIDE =
  /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|[\ud83c-\ud83e][\udc00-\udfff]/g;
const LEVEL_SIGNS = { error: "E", warn: "W", info: "I", debug: "D" };
const SPOKEN_EVERY_MS = 3_000;

export class LogView {
  constructor(model) {
    this.model = model;
    this.wraps = matchMedia(`(max-width: ${NARROW}px)`).matches;
    this.follows = true;
    this.pausedAt = null;
    this.active = null;
    this.lastTop = 0;
    this.viewport = el("div", {
      class: "log",
      tabindex: "0",
      role: "listbox",
      "aria-label": `Lines of ${model.title}`,
      onscroll: () => this._scrolled(),
      onkeydown: (event) => this._key(event),
      onclick: (event) => this._clicked(event),
      // Before the browser scrolls, so that no new line gets in between; a log that fits has nowhere to go.
      onwheel: (event) => event.deltaY < 0 && this.viewport.scrollTop > 0 && this.setFollows(false),
    });
    this.rows = new Rows(this.viewport, {
      fill: (row, index) => this._fill(row, model.selection.shown[index]),
      key: (index) => model.selection.shown[index],
    });
    this.tools = new LogTools(this);
    this.fresh = el("button", { class: "to-end", type: "button", hidden: true, onclick: () => this.resume() });
    this.empty = el("p", { class: "empty" });
    this.spoken = el("div", { class: "spoken", role: "log", "aria-live": "off" });
    this.element = el(
      "section",
      { class: "log-view", "aria-label": model.title },
      el("h1", { class: "visually-hidden" }, `Log ${model.title}`),
      this.tools.element,
      el("div", { class: "log-frame" }, this.viewport, this.empty, this.fresh),
      this.spoken,
    );
    this.spokenUntil = model.log.end;
  }

  attach() {
    // Out of the document, a scroll position is forgotten.
    if (!this.follows) this.viewport.scrollTop = this.lastTop;
    this.sizes = new ResizeObserver(() => this._resized());
    this.sizes.observe(this.viewport);
    this.model.onchange = () => this.schedule();
    this.speaking = setInterval(() => this._speak(), SPOKEN_EVERY_MS);
    this.schedule();
  }

  detach() {
    this.sizes.disconnect();
    this.model.onchange = () => {};
    clearInterval(this.speaking);
  }

  schedule() {
    this.frame ??= requestAnimationFrame(() => {
      this.frame = null;
      this.update();
    });
  }

  update() {
    const { selection } = this.model;
    const dropped = selection.update(this.pausedAt ?? this.model.log.end);
    const lost = this.rows.heights.shift(Math.min(dropped, this.rows.heights.ends.length));
    for (let index = this.rows.heights.ends.length; index < selection.shown.length; index++) {
      this.rows.heights.push(this._height(selection.shown[index]));
    }
    if (lost && !this.follows) this.viewport.scrollTop -= lost;
    this.rows.render();
    if (this.follows) this._toEnd();
    this._tell();
  }

  /** Choose and measure anew: after another search, filter or width. The line in the middle stays where it is. */
  renew({ forget = true } = {}) {
    const middle = this._numberAt(this.viewport.scrollTop + this.viewport.clientHeight / 2);
    if (forget) this.model.selection.reset();
    this.rows.heights.clear();
    this.rows.forget();
    this._measure();
    this.model.selection.update(this.pausedAt ?? this.model.log.end);
    if (!this.follows && middle !== undefined) this._center(middle);
    this.update();
  }

  setFollows(follows) {
    this.follows = follows;
    if (follows) this.update();
    else this._tell();
  }

  setPaused(paused) {
    this.pausedAt = paused ? this.model.log.end : null;
    this.update();
  }

  setWraps(wraps) {
    this.wraps = wraps;
    this.renew({ forget: false });
  }

  resume() {
    this.pausedAt = null;
    this.setFollows(true);
    this.viewport.focus({ preventScroll: true });
  }

  /** Go to the next match, or with -1 to the one before. */
  find(step) {
    const { matches } = this.model.selection;
    if (!matches.length) return;
    const here = this.active ?? this._numberAt(this.viewport.scrollTop) ?? 0;
    let place = step > 0 ? below(matches, here + 1) : below(matches, here) - 1;
    // Who follows looks at the end, and so for the newest.
    if (this.active === null && (step < 0 || this.follows)) place = matches.length - 1;
    this.activate(matches[(place + matches.length) % matches.length], { center: true });
  }

  activate(number, { center = false } = {}) {
    const before = this.active;
    this.active = number;
    this.follows = false;
    if (center) this._center(number);
    else this._intoSight(number);
    this.rows.render();
    for (const one of [before, number]) this._mark(one);
    this._tell();
  }

  _key(event) {
    const { shown } = this.model.selection;
    const page = Math.max(1, Math.floor(this.viewport.clientHeight / this.rowHeight) - 1);
    const at =
      this.active === null ? below(shown, this._numberAt(this.viewport.scrollTop) ?? 0) - 1 : below(shown, this.active);
    const steps = {
      ArrowDown: at + 1,
      j: at + 1,
      ArrowUp: at - 1,
      k: at - 1,
      PageDown: at + page,
      PageUp: at - page,
      Home: 0,
    };
    const acts = {
      End: () => this.resume(),
      " ": () => this.setPaused(this.pausedAt === null),
      f: () => this.resume(),
      "/": () => this.tools.focus(),
      n: () => this.find(1),
      N: () => this.find(-1),
      w: () => this.setWraps(!this.wraps),
      Enter: () => this.active !== null && showLine(this.model.log.line(this.active)),
      Escape: () => this._deactivate(),
    };
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key in steps && shown.length)
      this.activate(shown[Math.min(Math.max(steps[event.key], 0), shown.length - 1)]);
    else if (event.key in acts) acts[event.key]();
    else return;
    event.preventDefault();
  }

  _deactivate() {
    const before = this.active;
    this.active = null;
    this._mark(before);
    this.viewport.removeAttribute("aria-activedescendant");
  }

  _clicked(event) {
    const row = event.target.closest(".row");
    if (!row || String(getSelection())) return;
    const number = Number(row.dataset.number);
    if (number === this.active) showLine(this.model.log.line(number));
    else this.activate(number);
  }

  _scrolled() {
    const { viewport } = this;
    const isAtEnd = viewport.scrollTop + viewport.clientHeight >= this.rows.heights.total - 2;
    const isOurs = viewport.scrollTop === this.lastTop; // told late: somebody may have turned the wheel since
    if (viewport.scrollTop < this.lastTop - 1 && !isAtEnd) this.follows = false;
    else if (isAtEnd && !isOurs && this.pausedAt === null && !this.follows && this.active === null) this.follows = true;
    this.lastTop = viewport.scrollTop;
    this.rows.render();
    this._mark(this.active);
    this._tell();
  }

  _resized() {
    if (this.viewport.clientWidth === this.width) this.schedule();
    else this.renew({ forget: false });
  }

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

  _height(number) {
    if (!this.rowHeight) this._measure();
    if (!this.wraps) return this.rowHeight;
    const { text } = this.model.log.line(number);
    const cells =
      this._prefix(number).length + text.length + (text.match(WIDE)?.filter((one) => one.length === 1).length ?? 0);
    return this.rowHeight * Math.max(1, Math.ceil(cells / this.columns));
  }

  /** Return what tells the topics of a pattern apart. */
  _prefix(number) {
    const { topic } = this.model.log.line(number);
    return this.model.isPattern && topic ? `${this.model.short(topic)} ` : "";
  }

  _fill(row, number) {
    const line = this.model.log.line(number);
    row.dataset.number = number;
    row.className = `row ${line.event ? "" : "note"} ${line.level ?? ""} ${line.stream ?? ""}`;
    row.id = `line-${number}`;
    row.setAttribute("aria-posinset", number + 1);
    row.setAttribute("aria-setsize", "-1");
    const prefix = this._prefix(number);
    row.replaceChildren(
      el("span", { class: "sign", title: line.level }, LEVEL_SIGNS[line.level] ?? ""),
      el("time", { class: "time" }, clock(line.at, { milliseconds: true })),
      el(
        "span",
        { class: "text" },
        prefix && el("span", { class: "from" }, prefix),
        pieces(line, this.model.selection.query).map(pieceElement),
      ),
    );
    this._mark(number, row);
  }

  _mark(number, row = this.rows.inSight.get(number)) {
    if (number === null || !row) return;
    const isActive = number === this.active;
    row.setAttribute("aria-selected", isActive);
    if (isActive) this.viewport.setAttribute("aria-activedescendant", row.id);
  }

  _numberAt(distance) {
    return this.model.selection.shown[this.rows.heights.at(distance)];
  }

  _center(number) {
    const top = this.rows.heights.top(below(this.model.selection.shown, number));
    this.viewport.scrollTop = top - this.viewport.clientHeight / 2;
    this.lastTop = this.viewport.scrollTop;
  }

  _intoSight(number) {
    const index = below(this.model.selection.shown, number);
    const { heights } = this.rows;
    const { viewport } = this;
    if (heights.top(index) < viewport.scrollTop) viewport.scrollTop = heights.top(index);
    else if (heights.ends[index] > viewport.scrollTop + viewport.clientHeight) {
      viewport.scrollTop = heights.ends[index] - viewport.clientHeight;
    }
    this.lastTop = viewport.scrollTop;
  }

  _toEnd() {
    this.viewport.scrollTop = this.rows.heights.total;
    this.lastTop = this.viewport.scrollTop;
    this.rows.render();
  }

  _tell() {
    const { log, selection } = this.model;
    const held = this.pausedAt === null ? 0 : log.end - this.pausedAt;
    const isBehind = !this.follows || this.pausedAt !== null;
    this.fresh.hidden = !isBehind || selection.shown.length === 0;
    this.fresh.textContent = this.pausedAt === null ? "↓ Follow" : `Paused · ${count(held, "new line")}`;
    this.empty.hidden = selection.shown.length > 0;
    this.empty.textContent = log.lines.length ? "No line is like that." : this.model.emptyText;
    this.tools.tell();
  }

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

function pieceElement({ text, part, isFound }) {
  if (!part && !isFound) return text;
  const piece = el(isFound ? "mark" : "span", { class: part?.classes || null }, text);
  if (part?.color) piece.style.color = part.color;
  if (part?.background) piece.style.background = part.background;
  return piece;
}
