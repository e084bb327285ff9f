// A subscription that outlives connections: it requests what it missed, and delivers each event once.

import { Cursor } from "./cursor.js";

/** @import { Gap, Match } from "./cursor.js" */

/**
 * An event as the views get it.
 * @typedef {object} LiveEvent
 * @property {string} topic
 * @property {number} publication the id of the publication
 * @property {unknown[]} args
 * @property {Record<string, any>} kwargs
 * @property {number | null} seq its number in its topic; null for events about sessions
 * @property {number} at when it was published, in milliseconds since the epoch
 * @property {boolean} isRetained whether it is the topic's latest state, sent on subscribing
 * @property {boolean} isPast whether it was published before the session began
 * @property {Record<string, string>} headers
 * @property {number | null} omittedBytes the size of a payload that was too large for the connection
 */

/**
 * The details of an EVENT: those of WAMP, and the router's own, which begin with an underscore.
 * @typedef {object} EventDetails
 * @property {string} [topic]
 * @property {boolean} [retained]
 * @property {number} [_seq]
 * @property {string} [_at]
 * @property {Record<string, string>} [_headers]
 * @property {number} [_omitted_bytes]
 */

/**
 * An EVENT: its type, the ids of the subscription and the publication, details, arguments and keyword arguments.
 * @typedef {[number, number, number, EventDetails, unknown[]?, Record<string, any>?]} EventMessage
 */

/**
 * @typedef {object} Handlers
 * @property {(event: LiveEvent) => void} [onEvent]
 * @property {(gap: Gap) => void} [onGap] before the event behind a gap
 * @property {(message: string) => void} [onOmitted] the past events are too many, and only new ones follow
 * @property {(status: Status, error: Error | null) => void} [onStatus]
 * @property {() => void} [onCaughtUp] all events were delivered that the session requested as history
 */

/** @typedef {"waiting" | "live" | "ended"} Status */

/** Whether a subscription waits for a connection, receives events, or was refused or revoked. */
export const Status = Object.freeze({
  WAITING: /** @type {const} */ ("waiting"),
  LIVE: /** @type {const} */ ("live"),
  ENDED: /** @type {const} */ ("ended"),
});

/** A subscription of the client. */
export class Subscription {
  /**
   * @param {string} uri a topic or pattern
   * @param {{ match?: Match, history?: Record<string, unknown> | null, retained?: boolean }} [options] `history` is the
   *   `_history` of the first session; with `retained`, each session begins with the topic's retained event
   * @param {Handlers} [handlers]
   * @param {() => void} [stop] unsubscribes
   */
  constructor(uri, { match = "exact", history = null, retained = false } = {}, handlers = {}, stop = () => {}) {
    this.uri = uri;
    this.match = match;
    this.retained = retained;
    this.handlers = handlers;
    this.stop = stop;
    this.cursor = new Cursor(uri, match, history);
    /** @type {number | null} the router's id for it in this session */
    this.id = null;
    /** @type {Status} */
    this.status = Status.WAITING;
    /** @type {Error | null} */
    this.error = null;
    /** How many sessions it has begun in. */
    this.sessions = 0;
    this.joinedAt = "";
  }

  /**
   * Begin in a new session and return the options of SUBSCRIBE.
   * @param {string} joinedAt when the session began, by the router's clock
   */
  begin(joinedAt) {
    this.joinedAt = joinedAt;
    this.sessions += 1;
    /** @type {Record<string, unknown>} */
    const options = this.match === "exact" ? {} : { match: this.match };
    const history = this.cursor.begin();
    if (history) options._history = history;
    if (this.retained) options.get_retained = true;
    return options;
  }

  /**
   * Handle SUBSCRIBED.
   * @param {number} id
   */
  subscribed(id) {
    this.id = id;
    this._setStatus(Status.LIVE);
  }

  /** Handle the end of the history that this session requested. */
  caughtUp() {
    this.cursor.caughtUp(this.joinedAt);
    this.handlers.onCaughtUp?.();
  }

  /**
   * Go on without the past events, which the router refuses as too many.
   * @param {string} message
   */
  omitPast(message) {
    this.retained = false;
    this.cursor.omitPast(this.joinedAt);
    this.handlers.onOmitted?.(message);
  }

  /** Handle the loss of the connection. */
  interrupted() {
    this.id = null;
    if (this.status === Status.LIVE) this._setStatus(Status.WAITING);
  }

  /**
   * Handle a refusal or a revocation.
   * @param {Error} error
   */
  ended(error) {
    this.id = null;
    this._setStatus(Status.ENDED, error);
  }

  /**
   * Handle an EVENT: deliver it unless it was delivered before.
   * @param {EventMessage} message
   */
  receive([, , publication, details, args = [], kwargs = {}]) {
    const at = details._at ? Date.parse(details._at) : Date.now();
    /** @type {LiveEvent} */
    const event = {
      topic: details.topic ?? this.uri,
      publication,
      args,
      kwargs,
      seq: details._seq ?? null,
      at,
      isRetained: details.retained === true,
      isPast: at < Date.parse(this.joinedAt),
      headers: details._headers ?? {},
      omittedBytes: details._omitted_bytes ?? null,
    };
    const received = this.cursor.receive(event);
    if (received === null) return;
    if (received.gap) this.handlers.onGap?.(received.gap);
    this.handlers.onEvent?.(event);
  }

  /**
   * @param {Status} status
   * @param {Error | null} [error]
   */
  _setStatus(status, error = null) {
    this.status = status;
    this.error = error;
    this.handlers.onStatus?.(status, error);
  }
}
