// DOM elements, times and counts. Text is always inserted as text, never as markup.

/**
 * A child of an element. Null, undefined and false are left out, so that a condition can be written in place.
 * @typedef {Node | string | null | undefined | false | readonly Child[]} Child
 */

/**
 * Attributes by name. A function under `on…` listens to that event; true sets an empty attribute; null, undefined
 * and false set none.
 * @typedef {Record<string, string | number | boolean | null | undefined | ((event: any) => unknown)>} Attributes
 */

/**
 * Create an element.
 * @template {keyof HTMLElementTagNameMap} Name
 * @param {Name} name
 * @param {Attributes} [attributes]
 * @param {...Child} children
 * @returns {HTMLElementTagNameMap[Name]}
 */
export function el(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(key.slice(2), value);
    else element.setAttribute(key, value === true ? "" : String(value));
  }
  element.append(...nodes(children));
  return element;
}

/**
 * @param {readonly Child[]} children
 * @returns {(Node | string)[]}
 */
function nodes(children) {
  return children.flatMap((child) => {
    if (child === null || child === undefined || child === false) return [];
    return typeof child === "string" || child instanceof Node ? [child] : nodes(child);
  });
}

/**
 * Return the descendant of an element that matches a selector. Throws when there is none.
 * @param {ParentNode} parent
 * @param {string} selector
 * @returns {HTMLElement}
 */
export function find(parent, selector) {
  const found = parent.querySelector(selector);
  if (!(found instanceof HTMLElement)) throw new Error(`no element matches ${selector}`);
  return found;
}

/**
 * Format a time of day, as `12:00:00` or `12:00:00.000` in the browser's time zone.
 * @param {number} at milliseconds since the epoch
 * @param {{ milliseconds?: boolean }} [options]
 */
export function clock(at, { milliseconds = false } = {}) {
  const time = new Date(at);
  /** @param {number} number */
  const two = (number) => String(number).padStart(2, "0");
  const text = `${two(time.getHours())}:${two(time.getMinutes())}:${two(time.getSeconds())}`;
  return milliseconds ? `${text}.${String(time.getMilliseconds()).padStart(3, "0")}` : text;
}

/**
 * Format an age coarsely, so that the text does not change every second.
 * @param {number} at milliseconds since the epoch
 * @param {number} [now]
 */
export function ago(at, now = Date.now()) {
  const seconds = Math.max(0, Math.round((now - at) / 1000));
  if (seconds < 5) return "just now";
  if (seconds < 60) return `${seconds} s ago`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)} h ago`;
  return new Date(at).toLocaleDateString(undefined, { day: "numeric", month: "short" });
}

/**
 * Format a number with its noun: `1 line`, `2,000 lines`.
 * @param {number} number
 * @param {string} one
 * @param {string} [many]
 */
export function count(number, one, many = `${one}s`) {
  return `${number.toLocaleString("en")} ${number === 1 ? one : many}`;
}

/**
 * Return the message of anything that was thrown.
 * @param {unknown} error
 */
export function messageOf(error) {
  return error instanceof Error ? error.message : String(error);
}
