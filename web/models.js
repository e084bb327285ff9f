// The open logs and records: each has a subscription and collects events, whether or not its view is shown.

import { clock, count } from "./dom.js";
import { LineFilter, Log } from "./lines.js";
import { Versions } from "./record.js";
import { Status } from "./subscription.js";

/** @import { Gap, Match } from "./cursor.js" */
/** @import { LiveEvent, Status as StatusName } from "./subscription.js" */
/** @import { Client } from "./wamp.js" */

/** @typedef {"log" | "record"} Kind */

/**
 * A reconnect whose history is still being fetched. `after` is how long the connection was lost, in milliseconds.
 * @typedef {{ after: number, events: number, isIncomplete: boolean }} Reconnect
 */

const FIRST_EVENTS = 5_000;
const FIRST_VERSIONS = 50;
/** @type {Record<string, Match>} */
const MATCHES = { "": "exact", "*": "prefix", "?": "wildcard" };

/**
 * Parse a name as the address of the page has it: `a.b` is a topic, `a.b*` a prefix, `a..b?` a wildcard pattern.
 * @param {string} name
 * @returns {{ uri: string, match: Match }}
 */
export function parseName(name) {
  const sign = /[*?]$/.exec(name)?.[0] ?? "";
  return { uri: name.slice(0, name.length - sign.length), match: MATCHES[sign] };
}

/**
 * Return the name of a topic or pattern; the opposite of `parseName`.
 * @param {string} uri
 * @param {string} match
 */
export function formatName(uri, match) {
  return uri + Object.keys(MATCHES).find((sign) => MATCHES[sign] === match);
}

/** A subscription that is open on the page. */
class Model {
  /**
   * @param {Client} client
   * @param {string} name
   * @param {Kind} kind
   * @param {{ history: Record<string, unknown>, retained?: boolean }} options
   */
  constructor(client, name, kind, options) {
    const { uri, match } = parseName(name);
    this.name = name;
    this.kind = kind;
    this.uri = uri;
    this.match = match;
    this.isPattern = match !== "exact";
    this.title = match === "prefix" ? `${uri}…` : uri || "(all)";
    /** Called when the content or the status has changed. */
    this.onchange = () => {};
    /** Called when `unread` or the status has changed. */
    this.onunread = () => {};
    /** How many events have come since the view was shown last. */
    this.unread = 0;
    /** @type {StatusName} */
    this.status = Status.WAITING;
    /** @type {Error | null} */
    this.error = null;
    /** @type {number | null} when the connection was lost */
    this.lostAt = null;
    /** @type {Reconnect | null} */
    this.reconnect = null;
    this.subscription = client.subscribe(
      uri,
      { match, ...options },
      {
        onEvent: (event) => this._receive(event),
        onGap: (gap) => this.gap(gap),
        onOmitted: (message) => this.omitted(message),
        onStatus: (status, error) => this._changed(status, error),
        onCaughtUp: () => this._caughtUp(),
      },
    );
  }

  close() {
    this.subscription.stop();
  }

  /**
   * Return a topic without the prefix that all topics of this subscription have.
   * @param {string} topic
   */
  shortTopic(topic) {
    return this.match === "prefix" && topic.startsWith(this.uri) ? topic.slice(this.uri.length) : topic;
  }

  /**
   * Return the text of an empty view.
   * @param {string} nothing the text of a subscription without events
   */
  _emptyText(nothing) {
    if (this.status === Status.ENDED) return this.error ? `Not available: ${this.error.message}.` : "";
    return this.status === Status.LIVE ? nothing : "Connecting …";
  }

  /** @param {LiveEvent} event */
  _receive(event) {
    this.add(event);
    if (this.reconnect && event.isPast) this.reconnect.events += 1;
    this.unread += 1;
    this.onunread();
    this.onchange();
  }

  /**
   * @param {StatusName} status
   * @param {Error | null} error
   */
  _changed(status, error) {
    const before = this.status;
    this.status = status;
    this.error = error;
    if (status === Status.WAITING && before === Status.LIVE) this.lostAt = Date.now();
    if (status === Status.LIVE && this.lostAt) {
      this.reconnect = { after: Date.now() - this.lostAt, events: 0, isIncomplete: false };
      this.lostAt = null;
    }
    if (status === Status.ENDED && error) this.ended(error);
    this.onunread();
    this.onchange();
  }

  _caughtUp() {
    if (!this.reconnect) return;
    this.reconnected(this.reconnect);
    this.reconnect = null;
    this.onchange();
  }

  /**
   * Add a new event.
   * @param {LiveEvent} _event
   */
  add(_event) {}

  /**
   * Handle events that will not come.
   * @param {Gap} _gap
   */
  gap(_gap) {}

  /**
   * Handle past events that will not come, since they are too many.
   * @param {string} _message
   */
  omitted(_message) {}

  /**
   * Handle a refusal or a revocation.
   * @param {Error} _error
   */
  ended(_error) {}

  /**
   * Handle the end of the history that a reconnect requested.
   * @param {Reconnect} _reconnect
   */
  reconnected(_reconnect) {}
}

/** A topic or pattern that is open as a log. */
export class LogModel extends Model {
  /**
   * @param {Client} client
   * @param {string} name
   */
  constructor(client, name) {
    super(client, name, "log", { history: { last: FIRST_EVENTS } });
    this.log = new Log();
    this.filter = new LineFilter(this.log);
  }

  get emptyText() {
    return this._emptyText("No events yet.");
  }

  /**
   * @override
   * @param {LiveEvent} event
   */
  add(event) {
    this.log.add(event);
  }

  /**
   * @override
   * @param {Gap} gap
   */
  gap({ topic, from, to }) {
    if (this.reconnect) this.reconnect.isIncomplete = true;
    const which = from === to ? `Event ${from}` : `Events ${from} to ${to}`;
    this.log.note(`${which} of ${topic} are missing: no longer kept, or not visible to you.`);
  }

  /**
   * @override
   * @param {string} message
   */
  omitted(message) {
    if (this.reconnect) this.reconnect.isIncomplete = true;
    this.log.note(`Past events are left out: ${message}.`);
  }

  /**
   * @override
   * @param {Error} error
   */
  ended(error) {
    if (this.log.lines.length) this.log.note(`Ended: ${error.message}.`);
  }

  /**
   * @override
   * @param {Reconnect} reconnect
   */
  reconnected({ after, events, isIncomplete }) {
    const seconds = Math.max(1, Math.round(after / 1000));
    const fetched = `${count(events, "event")} fetched${isIncomplete ? "" : ", nothing missing"}`;
    this.log.note(`Connection lost for ${seconds} s until ${clock(Date.now())}; ${fetched}.`);
  }
}

/** A topic that is open as a record. */
export class RecordModel extends Model {
  /**
   * @param {Client} client
   * @param {string} name
   */
  constructor(client, name) {
    super(client, name, "record", { history: { last: FIRST_VERSIONS }, retained: true });
    this.versions = new Versions();
  }

  get emptyText() {
    return this._emptyText("This record has no state yet.");
  }

  /**
   * @override
   * @param {LiveEvent} event
   */
  add(event) {
    this.versions.add(event);
  }
}
