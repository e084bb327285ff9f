// What is open: logs and records, each with its subscription, whether it is in sight or not.

import { clock, count } from "./dom.js";
import { Log, Selection } from "./lines.js";
import { History } from "./record.js";
import { Standing } from "./subscription.js";

const FIRST_EVENTS = 5_000;
const FIRST_VERSIONS = 50;
const MATCHES = { "": "exact", "*": "prefix", "?": "wildcard" };

/** A topic or pattern as it stands in the address: `a.b` is a topic, `a.b*` a prefix, `a..b?` a wildcard. */
export function parsedName(name) {
  const sign = /[*?]$/.exec(name)?.[0] ?? "";
  return { uri: name.slice(0, name.length - sign.length), match: MATCHES[sign] };
}

export function nameOf(uri, match) {
  return uri + Object.keys(MATCHES).find((sign) => MATCHES[sign] === match);
}

class Model {
  constructor(client, name, kind, options) {
    Object.assign(this, { client, name, kind, ...parsedName(name) });
    this.isPattern = this.match !== "exact";
    this.title = this.match === "prefix" ? `${this.uri}…` : this.uri || "(all)";
    this.onchange = () => {};
    this.onnews = () => {};
    this.news = 0;
    this.standing = Standing.WAITING;
    this.subscription = client.subscribe(
      this.uri,
      { match: this.match, ...options },
      {
        onEvent: (event) => this._take(event),
        onGap: (gap) => this.gap(gap),
        onStanding: (standing, error) => this._stands(standing, error),
        onCaughtUp: () => this._caughtUp(),
      },
    );
  }

  close() {
    this.subscription.stop();
  }

  /** Return a topic without what all topics of the pattern begin with. */
  short(topic) {
    return this.match === "prefix" && topic.startsWith(this.uri) ? topic.slice(this.uri.length) : topic;
  }

  _take(event) {
    this.take(event);
    if (this.returned && event.isPast) this.returned.events += 1;
    this.news += 1;
    this.onnews();
    this.onchange();
  }

  _stands(standing, error) {
    const before = this.standing;
    Object.assign(this, { standing, error });
    if (standing === Standing.WAITING && before === Standing.LIVE) this.cutAt = Date.now();
    if (standing === Standing.LIVE && this.cutAt) {
      this.returned = { after: Date.now() - this.cutAt, events: 0 };
      this.cutAt = null;
    }
    if (standing === Standing.ENDED) this.ended(error);
    this.onnews();
    this.onchange();
  }

  _caughtUp() {
    if (!this.returned) return;
    this.returns(this.returned);
    this.returned = null;
    this.onchange();
  }

  gap() {}
  ended() {}
  returns() {}
}

export class LogModel extends Model {
  constructor(client, name) {
    super(client, name, "log", { history: { last: FIRST_EVENTS } });
    this.log = new Log();
    this.selection = new Selection(this.log);
  }

  get emptyText() {
    if (this.standing === Standing.ENDED) return this.error.message;
    return this.standing === Standing.LIVE ? "Nothing was published here yet." : "Connecting …";
  }

  take(event) {
    this.log.add(event);
  }

  gap({ topic, from, to }) {
    if (this.returned) this.returned.isIncomplete = true;
    const which = from === to ? `Number ${from}` : `Numbers ${from} to ${to}`;
    this.log.note(`${which} of ${topic} are not kept any more, or not for you.`);
  }

  ended(error) {
    this.log.note(`Ended: ${error.message}.`);
  }

  returns({ after, events, isIncomplete }) {
    const seconds = Math.max(1, Math.round(after / 1000));
    this.log.note(
      `Connection lost for ${seconds} s until ${clock(Date.now())}; ${count(events, "event")} fetched${isIncomplete ? "" : ", nothing missing"}.`,
    );
  }
}

export class RecordModel extends Model {
  constructor(client, name) {
    super(client, name, "record", { history: { last: FIRST_VERSIONS }, retained: true });
    this.history = new History();
  }

  get emptyText() {
    if (this.standing === Standing.ENDED) return this.error.message;
    return this.standing === Standing.LIVE ? "There is no state of this record yet." : "Connecting …";
  }

  take(event) {
    this.history.add(event);
  }
}
