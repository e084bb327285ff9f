// The lines of a log: made from events, filtered, and searched.

import { parseLine } from "./ansi.js";

/**
 * @import { StyledPart } from "./ansi.js"
 * @import { LiveEvent } from "./subscription.js"
 */

/** @typedef {"error" | "warn" | "info" | "debug"} Level */

/**
 * A line of a log. Notes of the page itself have no topic, number or event.
 * @typedef {object} Line
 * @property {number} at when it was published, in milliseconds since the epoch
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
  return raw.split("\n").map((one) => {
    const line = parseLine(one);
    const { at, topic, seq } = event;
    return { at, topic, seq, level: level ?? levelOf(line.text), stream, ...line, event };
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
 * The newest lines of a log, numbered from 0. The oldest are dropped at the limit; every other line keeps its number,
 * so that selections and search matches stay valid.
 */
export class Log {
  /** @param {number} [kept] how many lines are kept at least */
  constructor(kept = KEPT_LINES) {
    this.kept = kept;
    /** @type {Line[]} */
    this.lines = [];
    /** The number of the oldest line. */
    this.first = 0;
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
    for (const line of linesOf(event)) this.lines.push(line);
    this._dropOldest();
  }

  /**
   * Append a note of the page itself.
   * @param {string} text
   * @param {number} [at]
   */
  note(text, at = Date.now()) {
    this.lines.push({ at, topic: "", seq: null, level: null, stream: null, text, parts: null, event: null });
  }

  _dropOldest() {
    if (this.lines.length < this.kept + Math.min(DROPPED_AT_ONCE, this.kept)) return;
    const count = this.lines.length - this.kept;
    this.lines.splice(0, count);
    this.first += count;
  }
}

/** The numbers of a log's lines that a filter shows, and of those that match a search. `update` adds new lines. */
export class LineFilter {
  /** @param {Log} log */
  constructor(log) {
    this.log = log;
    /** @type {Set<Level | null>} */
    this.levels = new Set();
    this.query = "";
    this.onlyMatches = false;
    /** @type {number[]} */
    this.shown = [];
    /** @type {number[]} */
    this.matches = [];
    /** The number up to which lines are filtered. */
    this.until = log.first;
  }

  /** Whether lines may be hidden. */
  get isActive() {
    return this.levels.size > 0 || (this.onlyMatches && this.query !== "");
  }

  /** Forget all results, so that `update` filters every line again. */
  reset() {
    this.shown = [];
    this.matches = [];
    this.until = this.log.first;
  }

  /**
   * Filter the lines before number `end` that are new, and return how many shown lines were dropped from the log.
   * @param {number} [end]
   */
  update(end = this.log.end) {
    const { log } = this;
    const dropped = below(this.shown, log.first);
    if (dropped) this.shown.splice(0, dropped);
    const droppedMatches = below(this.matches, log.first);
    if (droppedMatches) this.matches.splice(0, droppedMatches);
    for (let number = Math.max(this.until, log.first); number < end; number++) this._add(number);
    this.until = Math.max(this.until, end);
    return dropped;
  }

  /** @param {number} number */
  _add(number) {
    const line = this.log.line(number);
    if (this.levels.size && line.event && !this.levels.has(line.level)) return;
    const isMatch = this.query !== "" && contains(line.text, this.query);
    if (this.onlyMatches && this.query !== "" && !isMatch) return;
    if (isMatch) this.matches.push(number);
    this.shown.push(number);
  }
}

/**
 * Return how many of the ascending numbers are below a bound.
 * @param {readonly number[]} numbers
 * @param {number} bound
 */
export function below(numbers, bound) {
  let low = 0;
  let high = numbers.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (numbers[middle] < bound) low = middle + 1;
    else high = middle;
  }
  return low;
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
