// A list of a hundred thousand rows of which only those in sight are in the document.

import { el } from "./dom.js";

const BEYOND = 12; // rows above and below what is in sight

/** Where rows are: each as high as its cells need at this width. */
export class Heights {
  constructor() {
    this.clear();
  }

  clear() {
    this.ends = [];
  }

  get total() {
    return this.ends.length ? this.ends[this.ends.length - 1] : 0;
  }

  push(height) {
    this.ends.push(this.total + height);
  }

  /** Forget the first rows; return how high they were. */
  shift(count) {
    if (!count) return 0;
    const height = this.ends[count - 1];
    this.ends = this.ends.slice(count).map((end) => end - height);
    return height;
  }

  top(index) {
    return index ? this.ends[index - 1] : 0;
  }

  /** Return the index of the row at a distance from the top. */
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

/** Keeps the rows in sight in the document; `fill(row, index)` writes one, `key(index)` says which it is. */
export class Rows {
  constructor(viewport, { fill, key }) {
    Object.assign(this, { viewport, fill, key });
    this.heights = new Heights();
    this.canvas = el("div", { class: "canvas", role: "presentation" });
    this.viewport.append(this.canvas);
    this.inSight = new Map();
    this.spare = [];
  }

  /** Write every row anew at the next `render`. */
  forget() {
    for (const row of this.inSight.values()) this._put(row);
    this.inSight.clear();
  }

  render() {
    const { viewport, heights } = this;
    this.canvas.style.height = `${heights.total}px`;
    const count = heights.ends.length;
    const from = Math.max(heights.at(viewport.scrollTop) - BEYOND, 0);
    const to = Math.min(heights.at(viewport.scrollTop + viewport.clientHeight) + BEYOND + 1, count);
    const wanted = new Map();
    for (let index = from; index < to; index++) wanted.set(this.key(index), index);
    for (const [key, row] of this.inSight) {
      if (wanted.has(key)) continue;
      this.inSight.delete(key);
      this._put(row);
    }
    for (const [key, index] of wanted) this._show(key, index);
  }

  _show(key, index) {
    let row = this.inSight.get(key);
    if (!row) {
      row = this.spare.pop() ?? this.canvas.appendChild(el("div", { class: "row", role: "option" }));
      row.hidden = false;
      this.inSight.set(key, row);
      this.fill(row, index);
    }
    row.style.transform = `translateY(${this.heights.top(index)}px)`;
  }

  _put(row) {
    row.hidden = true;
    row.removeAttribute("id");
    this.spare.push(row);
  }
}
