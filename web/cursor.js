// The position of a subscription: which events are new, and which history to request after a reconnect.

/**
 * The parts of an event that the cursor uses. `seq` is its number in its topic; events about sessions have none.
 * @typedef {{ topic: string, publication: number, seq: number | null, at: number, isRetained: boolean }} Position
 */

/** @typedef {"exact" | "prefix" | "wildcard"} Match */

/**
 * Events of a topic that will not come: from the number `from` up to and including `to`.
 * @typedef {{ topic: string, from: number, to: number }} Gap
 */

const TOPICS_BYTES = 24_000; // API Gateway accepts frames of at most 32 KB
const NUMBER_BYTES = 24; // a topic's entry without its name
const GRACE_MS = 900_000; // how far before the newest event the topics without room are requested again
// Events about sessions have no number, and a PUBLISH that is handled again after five minutes has another one.
const KEPT_PUBLICATIONS = 1_000;

/** The position of a client in the topics that a pattern matches. It outlives connections. */
export class Cursor {
  /**
   * @param {string} uri a topic or pattern
   * @param {Match} match
   * @param {Record<string, unknown> | null} history the `_history` of the first SUBSCRIBE
   */
  constructor(uri, match, history) {
    this.uri = uri;
    this.match = match;
    this.history = history;
    /** Whether the history that was requested first has come completely. */
    this.isCaughtUp = false;
    /** @type {string | null} when, by the router's clock, the session began in which that happened */
    this._since = null;
    /** @type {Map<string, number>} the highest number by topic, the most recently received topic last */
    this._numbers = new Map();
    this._newestAt = 0;
    /** @type {Map<string, number>} the publication of each topic's retained event */
    this._retained = new Map();
    /** @type {Set<number>} */
    this._publications = new Set();
    this._sessions = 0;
    /** @type {Set<string>} topics that have had an event in this session */
    this._checked = new Set();
  }

  /** Begin a session and return the `_history` to request in it, or null. */
  begin() {
    this._sessions += 1;
    this._checked.clear();
    const number = this._numbers.get(this.uri);
    if (this.match === "exact" && number !== undefined) return { after: number };
    if (!this.isCaughtUp || this._since === null) return this.history;
    return { after: this._afterEach(this._since) };
  }

  /**
   * Note that the history has come that was requested by a session.
   * @param {string} joinedAt when the session began, by the router's clock
   */
  caughtUp(joinedAt) {
    this.isCaughtUp = true;
    this._since ??= joinedAt;
  }

  /**
   * Continue with the events after the next SUBSCRIBE alone, and later with those of a session's time.
   * @param {string} joinedAt
   */
  omitPast(joinedAt) {
    this.history = null;
    this._since = joinedAt;
    this.isCaughtUp = false;
    this._numbers.clear();
  }

  /**
   * Return null for an event that was received before, else the gap before it, if there is one.
   * @param {Position} event
   * @returns {{ gap: Gap | null } | null}
   */
  receive(event) {
    const { topic, publication, seq } = event;
    if (seq === null) return this._isNewPublication(publication) ? { gap: null } : null;
    const last = this._numbers.get(topic);
    const isKnown = this._retained.get(topic) === publication;
    if (last !== undefined && seq <= last) return null;
    if (event.isRetained) {
      this._retained.set(topic, publication);
      return isKnown ? null : { gap: null };
    }
    this._numbers.delete(topic);
    this._numbers.set(topic, seq);
    this._newestAt = Math.max(this._newestAt, event.at);
    const gap = this._gap(topic, last, seq);
    return this._isNewPublication(publication) && !isKnown ? { gap } : null;
  }

  /** @param {number} publication */
  _isNewPublication(publication) {
    if (this._publications.has(publication)) return false;
    this._publications.add(publication);
    const [oldest] = this._publications;
    if (this._publications.size > KEPT_PUBLICATIONS) this._publications.delete(oldest);
    return true;
  }

  /**
   * Return the gap before a topic's first event of a session that is not the first one. Later jumps of the numbers are
   * not gaps: the numbers between may belong to events that the user may not see.
   * @param {string} topic
   * @param {number | undefined} last
   * @param {number} seq
   */
  _gap(topic, last, seq) {
    if (this._checked.has(topic)) return null;
    this._checked.add(topic);
    const isGap = this._sessions > 1 && last !== undefined && seq > last + 1;
    return isGap ? { topic, from: last + 1, to: seq - 1 } : null;
  }

  /**
   * Return the numbers by topic. When they do not fit into a frame, the most recently received topics are named, and
   * the others are requested by time: their events come again, and `receive` drops them.
   * @param {string} since
   */
  _afterEach(since) {
    /** @type {Record<string, number>} */
    const topics = {};
    let room = TOPICS_BYTES;
    for (const [topic, seq] of [...this._numbers].reverse()) {
      room -= 3 * JSON.stringify(topic).length + NUMBER_BYTES; // three bytes in UTF-8 at most
      if (room < 0) {
        const from = Math.max(Date.parse(since), this._newestAt - GRACE_MS);
        return { since: new Date(from).toISOString(), topics };
      }
      topics[topic] = seq;
    }
    return { since, topics };
  }
}
