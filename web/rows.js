// A virtual list: of a hundred thousand rows, only those in the viewport are in the document.

import { el } from "./dom.js";

const OVERSCAN = 12; // rows that are rendered above and below the viewport

/** The positions of rows of different heights, in pixels. */
export class Heights {
  /** @type {number[]} where each row ends */
  ends = [];

  get total() {
    return this.ends.length ? this.ends[this.ends.length - 1] : 0;
  }

  /**
   * Append a row.
   * @param {number} height
   */
  push(height) {
    this.ends.push(this.total + height);
  }

  /**
   * Keep the first rows.
   * @param {number} count
   */
  cut(count) {
    this.ends.length = Math.min(count, this.ends.length);
  }

  /**
   * Return where a row begins.
   * @param {number} index
   */
  top(index) {
    return index ? this.ends[index - 1] : 0;
  }

  /**
   * Return the index of the row at a distance from the top.
   * @param {number} distance
   */
  at(distance) {
    let low = 0;
    let high = this.ends.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.ends[middle] <= distance) low = middle + 1;
      else high = middle;
    }
    return Math.min(low, Math.max(this.ends.length - 1, 0));
  }
}

/** The rendered rows of a scrolling viewport. Elements that leave the viewport are used again for others. */
export class Rows {
  /**
   * @param {HTMLElement} viewport
   * @param {{ fill: (row: HTMLElement, index: number) => void, key: (index: number) => number }} content `fill` writes
   *   the row of an index into an element; `key` returns what identifies that row when indexes shift
   */
  constructor(viewport, { fill, key }) {
    this.viewport = viewport;
    this.fill = fill;
    this.key = key;
    this.heights = new Heights();
    this.canvas = el("div", { class: "canvas", role: "presentation" });
    this.viewport.append(this.canvas);
    /** @type {Map<number, HTMLElement>} */
    this.rendered = new Map();
    /** @type {HTMLElement[]} */
    this.pool = [];
  }

  /** Write every row again at the next `render`. */
  invalidate() {
    for (const row of this.rendered.values()) this._release(row);
    this.rendered.clear();
  }

  render() {
    const { viewport, heights } = this;
    this.canvas.style.height = `${heights.total}px`;
    const count = heights.ends.length;
    const from = Math.max(heights.at(viewport.scrollTop) - OVERSCAN, 0);
    const to = Math.min(heights.at(viewport.scrollTop + viewport.clientHeight) + OVERSCAN + 1, count);
    /** @type {Map<number, number>} */
    const visible = new Map();
    for (let index = from; index < to; index++) visible.set(this.key(index), index);
    for (const [key, row] of this.rendered) {
      if (visible.has(key)) continue;
      this.rendered.delete(key);
      this._release(row);
    }
    let next = this.canvas.firstChild;
    for (const [key, index] of visible) {
      const row = this._show(key, index);
      // A selection and a screen reader follow the document's order. Rows that stay are not moved.
      if (row === next) next = row.nextSibling;
      else this.canvas.insertBefore(row, next);
    }
  }

  /**
   * @param {number} key
   * @param {number} index
   */
  _show(key, index) {
    let row = this.rendered.get(key);
    if (!row) {
      row = this.pool.pop() ?? el("div", { class: "row", role: "option" });
      row.hidden = false;
      this.rendered.set(key, row);
      this.fill(row, index);
    }
    row.setAttribute("aria-posinset", String(index + 1));
    row.style.transform = `translateY(${this.heights.top(index)}px)`;
    return row;
  }

  /** @param {HTMLElement} row */
  _release(row) {
    row.hidden = true;
    row.removeAttribute("id");
    this.canvas.append(row);
    this.pool.push(row);
  }
}
