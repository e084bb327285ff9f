// The lines of a log: made from events, ordered, filtered, and searched.

import { parseLine } from "./ansi.js";

/**
 * @import { StyledPart } from "./ansi.js"
 * @import { LiveEvent } from "./subscription.js"
 */

/** @typedef {"error" | "warn" | "info" | "debug"} Level */

/**
 * A line of a log. Notes of the page itself have no topic, number or event.
 * @typedef {object} Line
 * @property {number} at when it was written, or else published, in milliseconds since the epoch
 * @property {string} written its time in the file of a container, with nine digits; otherwise empty
 * @property {string} order the time that orders it: lines with the same are in the order of their numbers
 * @property {string} file the name of the file of a container; otherwise empty
 * @property {string} topic
 * @property {number | null} seq the event's number in its topic
 * @property {Level | null} level
 * @property {string | null} stream `stderr`, or another name that the event gives
 * @property {string} text
 * @property {StyledPart[] | null} parts
 * @property {LiveEvent | null} event
 */

/** How many lines a log keeps at least. */
export const KEPT_LINES = 150_000;
const DROPPED_AT_ONCE = 15_000;
/** The lines of an event that are shown, if it is no part of a file: 126 KB may be as many line feeds. */
const LINES_OF_EVENT = 1_000;
/** @type {readonly Level[]} */
export const LEVELS = ["error", "warn", "info", "debug"];

/** @type {Record<string, Level>} */
const LEVEL_NAMES = {
  fatal: "error",
  critical: "error",
  crit: "error",
  alert: "error",
  emerg: "error",
  panic: "error",
  error: "error",
  err: "error",
  severe: "error",
  warning: "warn",
  warn: "warn",
  notice: "info",
  info: "info",
  information: "info",
  debug: "debug",
  trace: "debug",
  verbose: "debug",
  fine: "debug",
};
const LEVEL_FIELD = /(?:^|[\s{,"'])(?:level|lvl|severity)["']?\s*[=:]\s*["']?([a-z]+)/i;
const LEVEL_IN_CAPITALS = /\b(FATAL|CRITICAL|CRIT|PANIC|ERROR|ERR|SEVERE|WARNING|WARN|NOTICE|INFO|DEBUG|TRACE)\b/;
const LEVEL_AT_START = /^\W{0,3}(fatal|critical|error|warning|warn|info|debug|trace)\b\W/i;
const LEVEL_WITHIN = 160; // characters from the start of a line
/** The time that crunch-run writes in front of a line: that at which the line began. */
const WRITTEN = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z) /;
const TEXT_FIELDS = ["text", "message", "msg", "line", "log"];

/**
 * Return the lines of an event.
 * @param {LiveEvent} event
 * @returns {Line[]}
 */
export function linesOf(event) {
  const { text, fields } = content(event);
  const level = LEVEL_NAMES[String(fields.level ?? fields.severity ?? event.headers.level ?? "").toLowerCase()];
  const stream = fields.stream ?? (event.topic.endsWith(".stderr") ? "stderr" : null);
  const raw = text.endsWith("\n") ? text.slice(0, -1) : text;
  const { topic, seq } = event;
  const file = event.headers.begin === undefined ? "" : topic.slice(topic.lastIndexOf(".") + 1);
  const every = raw.split("\n");
  const left = file ? 0 : every.length - LINES_OF_EVENT;
  if (left > 1) every.splice(LINES_OF_EVENT, left, `(${left} more lines: select one for the whole event)`);
  return every.map((one) => {
    const written = (file && WRITTEN.exec(one)?.[1]) || "";
    const line = parseLine(written ? one.slice(written.length + 1) : one);
    const at = written ? Date.parse(`${written.slice(0, 23)}Z`) : event.at;
    return { at, written, order: "", file, topic, seq, level: level ?? levelOf(line.text), stream, ...line, event };
  });
}

/**
 * Return the text of an event's payload, and its fields.
 * @param {LiveEvent} event
 * @returns {{ text: string, fields: Record<string, any> }}
 */
function content(event) {
  if (event.omittedBytes !== null) {
    const text = `(payload of ${event.omittedBytes} bytes omitted: too large for a connection)`;
    return { text, fields: { level: "warn" } };
  }
  const { cut_back_from: published, end } = event.headers;
  if (published) {
    const text = `(the file became shorter: ${published} bytes of it were shown, ${end} are left)`;
    return { text, fields: { level: "warn" } };
  }
  const [first] = event.args;
  const fields = { ...(isObject(first) ? first : {}), ...event.kwargs };
  if (typeof first === "string") return { text: event.args.map(asText).join(" "), fields };
  const name = TEXT_FIELDS.find((one) => typeof fields[one] === "string");
  if (name) return { text: fields[name], fields };
  const rest = Object.keys(event.kwargs).length ? [event.kwargs] : [];
  return { text: [...event.args, ...rest].map(asText).join(" "), fields };
}

/** @param {unknown} value */
function asText(value) {
  return typeof value === "string" ? value : JSON.stringify(value);
}

/**
 * @param {unknown} value
 * @returns {value is Record<string, any>}
 */
function isObject(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/**
 * Return the level that the start of a line names, or null.
 * @param {string} text
 * @returns {Level | null}
 */
export function levelOf(text) {
  const start = text.slice(0, LEVEL_WITHIN);
  const found = LEVEL_FIELD.exec(start) ?? LEVEL_IN_CAPITALS.exec(start) ?? LEVEL_AT_START.exec(start);
  return found ? (LEVEL_NAMES[found[1].toLowerCase()] ?? null) : null;
}

/**
 * The newest lines of a log, numbered from 0 as they arrive. The oldest are dropped at the limit; every other line
 * keeps its number, so that selections and search matches stay valid. `compare` has their order: files of containers
 * are merged by time, and any other line follows those that arrived before it.
 */
export class Log {
  /** @param {number} [kept] how many lines are kept at least */
  constructor(kept = KEPT_LINES) {
    this.kept = kept;
    /** @type {Line[]} */
    this.lines = [];
    /** The number of the oldest line. */
    this.first = 0;
    /** The names of the files of containers. @type {Set<string>} */
    this.files = new Set();
    this.newest = "";
    /** The order of the last line of each topic with a file, and where the file goes on if that line is unfinished.
     * @type {Map<string, { order: string, end: string | undefined }>} */
    this.ends = new Map();
    /** Compare the numbers of two lines by their order. */
    this.compare = (/** @type {number} */ one, /** @type {number} */ other) => {
      const [first, second] = [this.line(one).order, this.line(other).order];
      if (first === second) return one - other;
      return first < second ? -1 : 1;
    };
  }

  /** The number of the next line. */
  get end() {
    return this.first + this.lines.length;
  }

  /**
   * Return the line of a number that is not dropped yet.
   * @param {number} number
   */
  line(number) {
    return this.lines[number - this.first];
  }

  /**
   * Append the lines of an event.
   * @param {LiveEvent} event
   */
  add(event) {
    const lines = linesOf(event);
    if (lines[0].file) this._order(event, lines);
    else for (const line of lines) line.order = this.newest;
    for (const line of lines) this.lines.push(line);
    this._dropOldest();
  }

  /**
   * Append a note of the page itself.
   * @param {string} text
   * @param {number} [at]
   */
  note(text, at = Date.now()) {
    const no = { written: "", file: "", topic: "", seq: null, level: null, stream: null, parts: null, event: null };
    this.lines.push({ at, order: this.newest, text, ...no });
  }

  /**
   * Order the lines of a part of a file by time, and never against the order of the file. A line without a time follows
   * the newest line, and the rest of a line its beginning.
   * @param {LiveEvent} event
   * @param {Line[]} lines
   */
  _order({ topic, headers }, lines) {
    const before = this.ends.get(topic);
    let last = before?.order ?? "";
    let isRest = before?.end === headers.begin;
    for (const line of lines) {
      const own = line.written || (isRest ? last : this.newest);
      if (own > last) last = own;
      line.order = last;
      isRest = true;
    }
    this.files.add(lines[0].file);
    this.ends.set(topic, { order: last, end: headers.unfinished ? headers.end : undefined });
    if (last > this.newest) this.newest = last;
  }

  _dropOldest() {
    if (this.lines.length < this.kept + Math.min(DROPPED_AT_ONCE, this.kept)) return;
    const count = this.lines.length - this.kept;
    this.lines.splice(0, count);
    this.first += count;
  }
}

/**
 * The numbers of a log's lines that a filter shows, and of those that match a search, in the order of the log. `update`
 * adds new lines.
 */
export class LineFilter {
  /** @param {Log} log */
  constructor(log) {
    this.log = log;
    /** @type {Set<Level | null>} */
    this.levels = new Set();
    /** The files of containers that are shown; null shows all. @type {readonly string[] | null} */
    this.files = null;
    this.query = "";
    this.onlyMatches = false;
    /** @type {number[]} */
    this.shown = [];
    /** @type {number[]} */
    this.matches = [];
    /** The number from which the log's lines are kept. */
    this.first = log.first;
    /** The number up to which lines are filtered. */
    this.until = log.first;
  }

  /** Whether lines may be hidden. */
  get isActive() {
    return this.levels.size > 0 || this.files !== null || (this.onlyMatches && this.query !== "");
  }

  /** Forget all results, so that `update` filters every line again. */
  reset() {
    this.shown = [];
    this.matches = [];
    this.until = this.log.first;
  }

  /**
   * Filter the lines before number `end` that are new, and return the index from which the shown lines have changed.
   * @param {number} [end]
   */
  update(end = this.log.end) {
    const { log } = this;
    const kept = this._forgetDropped();
    /** @type {number[]} */
    const shown = [];
    for (let number = Math.max(this.until, log.first); number < end; number++) {
      if (this._shows(log.line(number))) shown.push(number);
    }
    this._merge(
      this.matches,
      shown.filter((number) => this._matches(log.line(number))),
    );
    this.until = Math.max(this.until, end);
    return Math.min(kept, this._merge(this.shown, shown));
  }

  /**
   * Return how many of the numbers, which are in the order of the log, come before a line. A dropped line is the first.
   * @param {readonly number[]} numbers
   * @param {number} number
   */
  place(numbers, number) {
    if (number < this.log.first) return 0;
    let low = 0;
    let high = numbers.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.log.compare(numbers[middle], number) < 0) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** Remove the lines that the log has dropped, and return the index of the first of them. */
  _forgetDropped() {
    const { first } = this.log;
    const { length } = this.shown;
    if (this.first === first) return length;
    this.first = first;
    const index = this.shown.findIndex((number) => number < first);
    this.shown = this.shown.filter((number) => number >= first);
    this.matches = this.matches.filter((number) => number >= first);
    return index < 0 ? length : index;
  }

  /**
   * Add numbers at their places, and return the first place.
   * @param {number[]} numbers
   * @param {number[]} added
   */
  _merge(numbers, added) {
    if (!added.length) return numbers.length;
    added.sort(this.log.compare);
    const index = this.place(numbers, added[0]);
    const rest = [...numbers.splice(index), ...added].sort(this.log.compare);
    for (const number of rest) numbers.push(number);
    return index;
  }

  /** @param {Line} line */
  _shows(line) {
    if (line.event && this.levels.size && !this.levels.has(line.level)) return false;
    if (line.event && this.files && !this.files.includes(line.file)) return false;
    return !this.onlyMatches || this.query === "" || this._matches(line);
  }

  /** @param {Line} line */
  _matches(line) {
    return this.query !== "" && contains(line.text, this.query);
  }
}

/**
 * Return whether a text contains a query, which is in lower case.
 * @param {string} text
 * @param {string} query
 */
export function contains(text, query) {
  return text.toLowerCase().includes(query);
}

/**
 * A piece of a line's text that has one style, and is either inside or outside a search match.
 * @typedef {{ text: string, part: StyledPart | null, isMatch: boolean }} Segment
 */

/**
 * Return the segments of a line in order, cut where a style or a match of the query begins or ends.
 * @param {Pick<Line, "text" | "parts">} line
 * @param {string} query
 * @returns {Segment[]}
 */
export function segments({ text, parts }, query) {
  const cuts = new Set([0, text.length]);
  for (const part of parts ?? []) cuts.add(part.from).add(part.to);
  const found = occurrences(text, query);
  for (const at of found) cuts.add(at).add(at + query.length);
  const ends = [...cuts].sort((one, other) => one - other);
  return ends.slice(0, -1).map((from, index) => ({
    text: text.slice(from, ends[index + 1]),
    part: parts?.find((part) => part.from <= from && from < part.to) ?? null,
    isMatch: found.some((at) => at <= from && from < at + query.length),
  }));
}

/**
 * @param {string} text
 * @param {string} query
 */
function occurrences(text, query) {
  /** @type {number[]} */
  const found = [];
  if (!query) return found;
  const searched = text.toLowerCase();
  for (let at = searched.indexOf(query); at !== -1; at = searched.indexOf(query, at + query.length)) found.push(at);
  return found;
}
