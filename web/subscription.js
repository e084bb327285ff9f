// What is subscribed to, across connections: how far it was seen, and how to ask for the rest.

export const Standing = Object.freeze({ WAITING: "waiting", LIVE: "live", ENDED: "ended" });

const MARKS_BYTES = 24_000; // a frame to API Gateway has 32 KB at most
const LATE_MS = 600_000; // no event is longer on its way than this
const REMEMBERED = 2_000;

export class Subscription {
  /**
   * `options`: `match`, `history` (`_history` of the first time), `retained`.
   * `handlers`: `onEvent({ topic, seq, at, publication, isRetained, isPast, args, kwargs, headers, omittedBytes })`,
   * `onGap({ topic, from, to })`, `onStanding(standing, error)`, `onCaughtUp()`.
   */
  constructor(uri, { match = "exact", history = null, retained = false } = {}, handlers = {}, stop = () => {}) {
    Object.assign(this, { uri, match, history, retained, handlers, stop });
    this.id = null;
    this.standing = Standing.WAITING;
    this.seen = new Map(); // the highest number by topic
    this.latest = new Map(); // the same with what was only told as the latest
    this.publications = new Set(); // of events without a number
    this.since = null;
    this.newest = 0;
    this.checked = new Set(); // topics whose first event after a return has come
    this.begins = 0;
    this.hasPast = false; // all of what was asked for at first
  }

  /** Return the options with which to subscribe now; `now` is the router's time. */
  begin(now) {
    this.since ??= now;
    this.joinedAt = Date.parse(now);
    this.begins += 1;
    this.checked.clear();
    const options = this.match === "exact" ? {} : { match: this.match };
    const history = this._history();
    if (history) options._history = history;
    if (this.retained && !this.hasPast) options.get_retained = true;
    return options;
  }

  begun(id) {
    this.id = id;
    this._stand(Standing.LIVE);
  }

  caughtUp() {
    this.hasPast = true;
    this.handlers.onCaughtUp?.();
  }

  interrupted() {
    this.id = null;
    if (this.standing === Standing.LIVE) this._stand(Standing.WAITING);
  }

  ended(error) {
    this.id = null;
    this._stand(Standing.ENDED, error);
  }

  /** Take an EVENT; one that was seen already goes to nobody. */
  take([, , publication, details, args = [], kwargs = {}]) {
    const topic = details.topic ?? this.uri;
    const event = {
      topic,
      publication,
      args,
      kwargs,
      seq: details._seq ?? null,
      at: details._at ? Date.parse(details._at) : Date.now(),
      isRetained: details.retained === true,
      headers: details._headers ?? {},
      omittedBytes: details._omitted_bytes ?? null,
    };
    event.isPast = event.at < this.joinedAt;
    if (!this._isNew(event)) return;
    this.newest = Math.max(this.newest, event.at);
    this.handlers.onEvent?.(event);
  }

  _isNew(event) {
    if (event.seq === null) return this._isNewPublication(event.publication);
    const { topic, seq } = event;
    this.latest.set(topic, Math.max(seq, this.latest.get(topic) ?? 0));
    if (event.isRetained) return true;
    const last = this.seen.get(topic);
    if (last !== undefined && seq <= last) return false;
    this.seen.set(topic, seq);
    this._lookForGap(topic, last, seq);
    return true;
  }

  _isNewPublication(publication) {
    if (this.publications.has(publication)) return false;
    this.publications.add(publication);
    if (this.publications.size > REMEMBERED) this.publications.delete(this.publications.values().next().value);
    return true;
  }

  /** Numbers may jump for good reasons, so only the first one after a return is looked at. */
  _lookForGap(topic, last, seq) {
    if (this.checked.has(topic)) return;
    this.checked.add(topic);
    if (this.begins > 1 && last !== undefined && seq > last + 1) {
      this.handlers.onGap?.({ topic, from: last + 1, to: seq - 1 });
    }
  }

  _history() {
    const marks = new Map([...this.latest, ...this.seen]);
    const mark = this.seen.get(this.uri) ?? (this.hasPast ? marks.get(this.uri) : undefined);
    if (this.match === "exact" && mark !== undefined) return { after: mark };
    if (!this.hasPast) return this.history;
    return { after: { since: this.since, ...this._marks(marks) } };
  }

  /** Return the numbers by topic, or of too many topics those that fit: the rest comes again and is dropped here. */
  _marks(marks) {
    const topics = {};
    let size = 0;
    for (const [topic, seq] of [...marks].reverse()) {
      size += 3 * topic.length + 24;
      if (size > MARKS_BYTES) return { since: new Date(this.newest - LATE_MS).toISOString(), topics };
      topics[topic] = seq;
    }
    return { topics };
  }

  _stand(standing, error = null) {
    this.standing = standing;
    this.error = error;
    this.handlers.onStanding?.(standing, error);
  }
}
