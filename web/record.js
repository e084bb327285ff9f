// A record's states in their order, and what changed from one to the next.

const MOST_VERSIONS = 500;

/** Return the fields of a value by their paths: `{ "state": "Running", "runtime.memory": 7 }`. */
export function flat(value, path = "", fields = new Map()) {
  const isContainer = typeof value === "object" && value !== null;
  const entries = isContainer ? Object.entries(value) : [];
  if (!entries.length) {
    if (path || !isContainer) fields.set(path || "(value)", isContainer ? (Array.isArray(value) ? "[]" : "{}") : value);
    return fields;
  }
  for (const [name, inner] of entries) flat(inner, path ? `${path}.${name}` : name, fields);
  return fields;
}

/** Return what is different: `[{ path, kind: "added" | "changed" | "removed", before, after }]`. */
export function changes(before, after) {
  const found = [];
  for (const [path, value] of after) {
    if (!before.has(path)) found.push({ path, kind: "added", before: undefined, after: value });
    else if (before.get(path) !== value) found.push({ path, kind: "changed", before: before.get(path), after: value });
  }
  for (const [path, value] of before) {
    if (!after.has(path)) found.push({ path, kind: "removed", before: value, after: undefined });
  }
  return found;
}

/** The states that are known, by number, however they came: as the latest, as history, or live. */
export class History {
  constructor() {
    this.versions = [];
  }

  get latest() {
    return this.versions[this.versions.length - 1] ?? null;
  }

  add(event) {
    const value = event.args.length ? event.args[0] : event.kwargs;
    const version = { at: event.at, seq: event.seq, fields: flat(value), event, changes: [] };
    const place = this._place(version);
    if (place === null) return null;
    this.versions.splice(place, 0, version);
    this._compare(place);
    this._compare(place + 1);
    if (this.versions.length > MOST_VERSIONS) this.versions.shift();
    return version;
  }

  _place({ seq, event }) {
    if (this.versions.some((one) => one.event.publication === event.publication)) return null;
    if (seq === null) return this.versions.length;
    let place = this.versions.length;
    while (place > 0 && (this.versions[place - 1].seq ?? 0) > seq) place -= 1;
    return place;
  }

  _compare(place) {
    const version = this.versions[place];
    if (version) version.changes = place ? changes(this.versions[place - 1].fields, version.fields) : [];
  }
}
