// Follows topics of a live exchange with autobahn-js: delivers each event once, in order, across lost connections.
import autobahn from "autobahn";

const KEPT_PUBLICATIONS = 100_000; // per subscription, to recognize duplicates
const GRACE_MS = 120_000; // events of different topics may overtake one another, and clocks differ
const KEEP_ALIVE_MS = 300_000; // API Gateway ends a connection after ten minutes without a message; Autobahn sends none

/** @typedef {"exact" | "prefix" | "wildcard"} Match */
/** @typedef {{ last: number } | { after_publication: number } | { after: string }} History */

/**
 * An event. `retained` marks the latest state of its topic, which is sent on subscribing.
 * @typedef {object} LiveEvent
 * @property {string} topic
 * @property {number} publication
 * @property {boolean} [retained]
 * @property {any[]} args
 * @property {Record<string, any>} kwargs
 */

/** @typedef {(event: LiveEvent) => void} Callback */
/** @typedef {{ topic: string, callback: Callback, match: Match, latest: boolean, cursor: Cursor }} Followed */

/** How far a subscription has been received. Times are in milliseconds since the epoch. */
export class Cursor {
  #match;
  #last;
  /** @type {Set<number>} */
  #publications = new Set();
  /** @type {number | null} */
  #newest = null;
  /** @type {number | null} */
  #retained = null;
  /** @type {number | null} */
  #receivedUntil = null;
  #isCaughtUp = false;

  /**
   * @param {Match} match
   * @param {number} last how many past events to request first
   */
  constructor(match, last) {
    this.#match = match;
    this.#last = last;
  }

  /**
   * Begin a session and return the history to request in it, or null.
   * @returns {History | null}
   */
  begin() {
    this.#isCaughtUp = false;
    if (this.#match === "exact" && this.#newest !== null) return { after_publication: this.#newest };
    if (this.#receivedUntil !== null) return { after: new Date(this.#receivedUntil - GRACE_MS).toISOString() };
    return this.#last ? { last: this.#last } : null;
  }

  /** Note that all of the requested history has come. */
  caughtUp(now = Date.now()) {
    this.#isCaughtUp = true;
    this.#receivedUntil = now;
  }

  /**
   * Return whether an event is new, and take note of it.
   * @param {{ publication: number, retained?: boolean }} event
   */
  isNew({ publication, retained }, now = Date.now()) {
    if (this.#isCaughtUp) this.#receivedUntil = now;
    const isKnown = this.#publications.has(publication);
    if (retained) this.#retained = publication;
    else if (!isKnown || publication === this.#retained) this.#newest = publication;
    if (isKnown) return false;
    this.#publications.add(publication);
    const [oldest] = this.#publications;
    if (this.#publications.size > KEPT_PUBLICATIONS) this.#publications.delete(oldest);
    return true;
  }
}

/** A connection that is opened again when it is lost. */
export class Live {
  #connection;
  /** @type {Followed[]} */
  #followed = [];
  /** @type {autobahn.Session | null} */
  #session = null;
  /** @type {ReturnType<typeof setInterval> | undefined} */
  #keepAlive;
  #failed;

  /**
   * Does not connect before `run`. `failed` is called with errors that another attempt would meet again.
   * @param {{ url: string, realm: string, user: string, ticket: string, failed?: (error: Error) => void }} options
   */
  constructor({ url, realm, user, ticket, failed = (error) => console.error(error) }) {
    this.#failed = failed;
    this.#connection = new autobahn.Connection({
      url,
      realm,
      authmethods: ["ticket"],
      authid: user,
      onchallenge: () => ticket,
      max_retries: -1,
      initial_retry_delay: 0.5,
      max_retry_delay: 30,
    });
    this.#connection.onopen = (session) => {
      this.#session = session;
      for (const one of this.#followed) this.#subscribe(session, one);
      // Its result does not count, and a lost connection closes by itself.
      const call = () => session.call("wamp.subscription.lookup", ["keep.alive"]).catch(() => {});
      this.#keepAlive = setInterval(call, KEEP_ALIVE_MS);
    };
    this.#connection.onclose = (_reason, { reason, message }) => {
      this.#session = null;
      clearInterval(this.#keepAlive);
      if (!reason || reason === "wamp.close.transport_lost" || reason === "wamp.error.timeout") return false; // retry
      failed(new Error(`${reason} ${message ?? ""}`));
      return true;
    };
  }

  /**
   * Call a function for each event. The `last` past events come first; with `latest`, a topic's retained event does.
   * @param {string} topic
   * @param {Callback} callback
   * @param {{ match?: Match, last?: number, latest?: boolean }} [options]
   */
  follow(topic, callback, { match = "exact", last = 0, latest = false } = {}) {
    const one = { topic, callback, match, latest, cursor: new Cursor(match, last) };
    this.#followed.push(one);
    if (this.#session) this.#subscribe(this.#session, one);
    return this;
  }

  run() {
    this.#connection.open();
    return this;
  }

  close() {
    if (this.#connection.isOpen) this.#connection.close();
  }

  /**
   * @param {autobahn.Session} session
   * @param {Followed} one
   */
  #subscribe(session, { topic, callback, match, latest, cursor }) {
    const history = cursor.begin();
    const options = { match, get_retained: latest, ...(history && { _history: history }) };
    session
      .subscribe(
        topic,
        (args, kwargs, details) => {
          if (cursor.isNew(details)) callback({ ...details, args: args ?? [], kwargs: kwargs ?? {} });
        },
        options,
      )
      .catch((error) => this.#failed(new Error(`${topic}: ${error.error ?? error} ${error.args?.[0] ?? ""}`)));
    // The reply to a call comes after the history of the SUBSCRIBE before it, whatever the reply is.
    const caughtUp = () => cursor.caughtUp();
    session.call("wamp.subscription.lookup", [topic, { match }]).then(caughtUp, caughtUp);
  }
}
