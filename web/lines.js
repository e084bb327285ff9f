// A log as lines: from events to what is shown, searched and filtered.

import { parsed } from "./ansi.js";

export const MOST_LINES = 150_000;
const DROPPED_AT_ONCE = 15_000;
export const LEVELS = ["error", "warn", "info", "debug"];

const WORDS = {
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
const NAMED = /(?:^|[\s{,"'])(?:level|lvl|severity)["']?\s*[=:]\s*["']?([a-z]+)/i;
const SHOUTED = /\b(FATAL|CRITICAL|CRIT|PANIC|ERROR|ERR|SEVERE|WARNING|WARN|NOTICE|INFO|DEBUG|TRACE)\b/;
const BEGUN = /^\W{0,3}(fatal|critical|error|warning|warn|info|debug|trace)\b\W/i;
const LOOKED_AT = 160; // characters in which a line's level is looked for
const TEXT_NAMES = ["text", "message", "msg", "line", "log"];

/** Return the lines of an event: `{ at, topic, seq, level, stream, text, parts, event }`. */
export function linesOf(event) {
  const { text, fields } = content(event);
  const named = WORDS[String(fields.level ?? fields.severity ?? event.headers.level ?? "").toLowerCase()];
  const stream = fields.stream ?? (event.topic.endsWith(".stderr") ? "stderr" : null);
  const raw = text.endsWith("\n") ? text.slice(0, -1) : text;
  return raw.split("\n").map((one) => {
    const line = parsed(one);
    const { at, topic, seq } = event;
    return { at, topic, seq, level: named ?? levelOf(line.text), stream, ...line, event };
  });
}

function content(event) {
  if (event.omittedBytes !== null) {
    return { text: `(${event.omittedBytes} bytes: too large for a connection, left out)`, fields: { level: "warn" } };
  }
  const [first] = event.args;
  const fields = { ...(isObject(first) ? first : {}), ...event.kwargs };
  if (typeof first === "string") return { text: event.args.map(asText).join(" "), fields };
  const name = TEXT_NAMES.find((one) => typeof fields[one] === "string");
  if (name) return { text: fields[name], fields };
  const rest = Object.keys(event.kwargs).length ? [event.kwargs] : [];
  return { text: [...event.args, ...rest].map(asText).join(" "), fields };
}

function asText(value) {
  return typeof value === "string" ? value : JSON.stringify(value);
}

function isObject(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function levelOf(text) {
  const beginning = text.slice(0, LOOKED_AT);
  const found = NAMED.exec(beginning) ?? SHOUTED.exec(beginning) ?? BEGUN.exec(beginning);
  return found ? (WORDS[found[1].toLowerCase()] ?? null) : null;
}

/**
 * All lines that came, numbered from 0; the oldest are dropped when there are too many.
 * A line keeps its number, so what is selected or found stays it.
 */
export class Log {
  constructor(most = MOST_LINES) {
    this.most = most;
    this.lines = [];
    this.first = 0; // the number of the oldest line
  }

  get end() {
    return this.first + this.lines.length;
  }

  line(number) {
    return this.lines[number - this.first];
  }

  add(event) {
    for (const line of linesOf(event)) this.lines.push(line);
    this._keepWithin();
  }

  note(text, at = Date.now()) {
    this.lines.push({ at, topic: "", seq: null, level: null, stream: null, text, parts: null, event: null });
  }

  _keepWithin() {
    if (this.lines.length < this.most + Math.min(DROPPED_AT_ONCE, this.most)) return;
    const count = this.lines.length - this.most;
    this.lines.splice(0, count);
    this.first += count;
  }
}

/** Which lines of a log are shown, and which of them match a search; brought up to date by `update`. */
export class Selection {
  constructor(log) {
    this.log = log;
    this.levels = new Set();
    this.query = "";
    this.onlyMatches = false;
    this.reset();
  }

  get isFiltered() {
    return this.levels.size > 0 || (this.onlyMatches && this.query !== "");
  }

  reset() {
    this.shown = [];
    this.matches = [];
    this.looked = this.log.first;
  }

  /** Look at the lines before number `end` that were not looked at yet; say how many shown ones were dropped. */
  update(end = this.log.end) {
    const { log } = this;
    const dropped = below(this.shown, log.first);
    if (dropped) this.shown.splice(0, dropped);
    const gone = below(this.matches, log.first);
    if (gone) this.matches.splice(0, gone);
    for (let number = Math.max(this.looked, log.first); number < end; number++) {
      const line = log.line(number);
      if (this.levels.size && line.event && !this.levels.has(line.level)) continue;
      const isMatch = this.query !== "" && contains(line.text, this.query);
      if (this.onlyMatches && this.query !== "" && !isMatch) continue;
      if (isMatch) this.matches.push(number);
      this.shown.push(number);
    }
    this.looked = Math.max(this.looked, end);
    return dropped;
  }
}

/** Return how many of the ascending numbers are below a bound. */
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

export function contains(text, query) {
  return text.toLowerCase().includes(query);
}

/** Return the pieces of a line's text in order: `{ text, part, isFound }`, cut where styles or finds begin or end. */
export function pieces({ text, parts }, query) {
  const cuts = new Set([0, text.length]);
  for (const part of parts ?? []) cuts.add(part.from).add(part.to);
  const found = finds(text, query);
  for (const at of found) cuts.add(at).add(at + query.length);
  const places = [...cuts].sort((one, other) => one - other);
  return places.slice(0, -1).map((from, index) => ({
    text: text.slice(from, places[index + 1]),
    part: parts?.find((part) => part.from <= from && from < part.to) ?? null,
    isFound: found.some((at) => at <= from && from < at + query.length),
  }));
}

function finds(text, query) {
  if (!query) return [];
  const among = text.toLowerCase();
  const found = [];
  for (let at = among.indexOf(query); at !== -1; at = among.indexOf(query, at + query.length)) found.push(at);
  return found;
}
