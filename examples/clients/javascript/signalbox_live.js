// Follows topics of a live exchange over autobahn-js: each event once, in order, through lost connections.
import autobahn from "autobahn";

const KEPT = 100_000; // publications of a subscription that are known as duplicates
const GRACE_MS = 120_000; // events of a pattern overtake one another, and clocks differ

export class Live {
  #connection;
  #followed = [];
  #session = null;

  // Connects when `run` is called. `failed` gets what cannot be repaired by another try.
  constructor({ url, realm, user, ticket, failed = (error) => console.error(error) }) {
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
      for (const one of this.#followed) this.#subscribe(session, one, failed);
    };
    this.#connection.onclose = (reason, { reason: said, message }) => {
      this.#session = null;
      if (!said || said === "wamp.close.transport_lost" || said === "wamp.error.timeout") return false; // tries again
      failed(new Error(`${said} ${message ?? ""}`));
      return true;
    };
    this.failed = failed;
  }

  // Calls back for each event. `last` events of the past come first; with `latest`, a topic's retained state does.
  follow(topic, callback, { match = "exact", last = 0, latest = false } = {}) {
    const one = { topic, callback, match, last, latest, seen: new Set(), newest: null, alive: null };
    this.#followed.push(one);
    if (this.#session) this.#subscribe(this.#session, one, this.failed);
    return this;
  }

  run() {
    this.#connection.open();
    return this;
  }

  close() {
    if (this.#connection.isOpen) this.#connection.close();
  }

  #subscribe(session, one, failed) {
    const options = { match: one.match, get_retained: one.latest };
    const history = past(one);
    if (history) options._history = history;
    const received = (args, kwargs, details) => {
      one.alive = Date.now();
      if (one.seen.has(details.publication)) return;
      one.seen.add(details.publication);
      if (one.seen.size > KEPT) one.seen.delete(one.seen.values().next().value);
      if (!details.retained) one.newest = details.publication;
      one.callback({ ...details, topic: details.topic, args: args ?? [], kwargs: kwargs ?? {} });
    };
    session.subscribe(one.topic, received, options).then(
      () => (one.alive ??= Date.now()),
      (error) => failed(new Error(`${one.topic}: ${error.error ?? error} ${error.args?.[0] ?? ""}`)),
    );
  }
}

// What to ask for before the first live event: what is behind the last one, and at first what is wanted of the past.
function past(one) {
  if (one.match === "exact" && one.newest !== null) return { after_publication: one.newest };
  if (one.alive !== null) return { after: new Date(one.alive - GRACE_MS).toISOString() };
  return one.last ? { last: one.last } : null;
}
