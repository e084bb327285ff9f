// The versions of a record in order, and the changes from one to the next.

/** @import { LiveEvent } from "./subscription.js" */

/** @typedef {{ path: string, kind: "added" | "changed" | "removed", before: unknown, after: unknown }} Change */

/**
 * A version of a record.
 * @typedef {object} Version
 * @property {number} at when it was published, in milliseconds since the epoch
 * @property {number | null} seq the event's number in its topic
 * @property {Map<string, unknown>} fields by path
 * @property {LiveEvent} event
 * @property {Change[]} changes since the version before
 */

const MAXIMUM_VERSIONS = 500;

/**
 * Return the fields of a value by path: `{ "state": "Running", "runtime.memory": 7 }`. An empty list or object is the
 * text `[]` or `{}`; a value that has no fields has the path `(value)`.
 * @param {unknown} value
 * @param {string} [path]
 * @param {Map<string, unknown>} [fields]
 */
export function flatten(value, path = "", fields = new Map()) {
  const isContainer = typeof value === "object" && value !== null;
  const entries = isContainer ? Object.entries(value) : [];
  for (const [name, inner] of entries) flatten(inner, path ? `${path}.${name}` : name, fields);
  if (entries.length) return fields;
  if (!isContainer) fields.set(path || "(value)", value);
  else if (path) fields.set(path, Array.isArray(value) ? "[]" : "{}");
  return fields;
}

/**
 * Return the differences between the fields of two values.
 * @param {Map<string, unknown>} before
 * @param {Map<string, unknown>} after
 */
export function changes(before, after) {
  /** @type {Change[]} */
  const found = [];
  for (const [path, value] of after) {
    if (!before.has(path)) found.push({ path, kind: "added", before: undefined, after: value });
    else if (before.get(path) !== value) {
      found.push({ path, kind: "changed", before: before.get(path), after: value });
    }
  }
  for (const [path, value] of before) {
    if (!after.has(path)) found.push({ path, kind: "removed", before: value, after: undefined });
  }
  return found;
}

/** The known versions of a record by number, in whatever order they arrive: retained, as history, or live. */
export class Versions {
  /** @type {Version[]} */
  all = [];

  /** The newest version, or null. */
  get latest() {
    return this.all[this.all.length - 1] ?? null;
  }

  /**
   * Add the version that an event carries. A publication that is known already is ignored.
   * @param {LiveEvent} event
   */
  add(event) {
    if (this.all.some((one) => one.event.publication === event.publication)) return;
    const value = event.args.length ? event.args[0] : event.kwargs;
    const index = this._indexOf(event.seq);
    this.all.splice(index, 0, { at: event.at, seq: event.seq, fields: flatten(value), event, changes: [] });
    this._compare(index);
    this._compare(index + 1);
    if (this.all.length > MAXIMUM_VERSIONS) this.all.shift();
  }

  /** @param {number | null} seq */
  _indexOf(seq) {
    let index = this.all.length;
    if (seq === null) return index;
    while (index > 0 && (this.all[index - 1].seq ?? 0) > seq) index -= 1;
    return index;
  }

  /** @param {number} index */
  _compare(index) {
    const version = this.all[index];
    if (version) version.changes = index ? changes(this.all[index - 1].fields, version.fields) : [];
  }
}
