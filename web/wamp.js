// A WAMP client for a page that stays open: it reconnects, asks for what it missed, and drops what comes twice.

import { Subscription } from "./subscription.js";

export const Phase = Object.freeze({
  CONNECTING: "connecting",
  LIVE: "live",
  WAITING: "waiting", // for the next attempt
  REFUSED: "refused", // by the router: another attempt would end alike
  CLOSED: "closed",
});

const HELLO = 1,
  WELCOME = 2,
  ABORT = 3,
  CHALLENGE = 4,
  AUTHENTICATE = 5,
  GOODBYE = 6,
  ERROR = 8;
const SUBSCRIBE = 32,
  SUBSCRIBED = 33,
  UNSUBSCRIBE = 34,
  UNSUBSCRIBED = 35,
  EVENT = 36,
  CALL = 48,
  RESULT = 50;

const SUBPROTOCOL = "wamp.2.json";
const ROLES = {
  subscriber: { features: { pattern_based_subscription: true, subscription_revocation: true } },
  caller: {},
};
// Reasons for which another attempt with the same name and ticket ends in the same way.
const FINAL = new Set([
  "wamp.error.authentication_denied",
  "wamp.error.authentication_failed",
  "wamp.error.authentication_required",
  "wamp.error.invalid_uri",
  "wamp.error.no_matching_auth_method",
  "wamp.error.no_such_realm",
  "wamp.error.not_authorized",
]);
const LOST = "signalbox.error.connection_lost";
const JOIN_MS = 15_000;
const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 15_000;
// API Gateway closes a connection that was idle for ten minutes; and one whose network is gone may say nothing at all.
const PROBE_AFTER_MS = 120_000;
const LOOK_EVERY_MS = 30_000;
const PROBE_MS = 10_000;

export class WampError extends Error {
  constructor(uri, message) {
    super(message || uri);
    this.uri = uri;
  }
}

export class Client {
  /** `watch` is told `{ phase, reason, retryAt }` on every change. `surroundings` are replaced by tests. */
  constructor({ url, realm, authid = "", ticket = "" }, watch = () => {}, surroundings = {}) {
    Object.assign(this, { url, realm, authid, ticket, watch });
    this.openSocket = surroundings.openSocket ?? ((at) => new WebSocket(at, [SUBPROTOCOL]));
    this.random = surroundings.random ?? Math.random;
    this.subscriptions = new Set();
    this.byId = new Map();
    this.pending = new Map();
    this.nextRequest = 1;
    this.attempts = 0;
    this.joins = 0;
    this.details = {};
    this.state = { phase: Phase.CLOSED };
  }

  get isLive() {
    return this.state.phase === Phase.LIVE;
  }

  start() {
    this._tell(Phase.CONNECTING);
    clearTimeout(this.retryTimer);
    let socket;
    try {
      socket = this.openSocket(this.url);
    } catch (error) {
      this._tell(Phase.REFUSED, error.message);
      return;
    }
    this.socket = socket;
    this.joinTimer = setTimeout(() => this._lost("no answer"), JOIN_MS);
    socket.onopen = () => this._send([HELLO, this.realm, this._helloDetails()]);
    socket.onmessage = ({ data }) => this._heard(JSON.parse(data));
    socket.onclose = ({ reason }) => this._lost(reason);
  }

  stop() {
    if (this.isLive) this._send([GOODBYE, {}, "wamp.close.goodbye_and_out"]);
    this._drop();
    this._tell(Phase.CLOSED);
  }

  /** Look at once whether the connection still is one: the network changed, or the page was asleep. */
  wake() {
    if (this.state.phase === Phase.WAITING) this.start();
    else if (this.isLive) this._probe();
  }

  /** Events go to `handlers.onEvent(event)`; see subscription.js. It outlives connections, until `stop()`. */
  subscribe(uri, options, handlers) {
    const subscription = new Subscription(uri, options, handlers, () => this._unsubscribe(subscription));
    this.subscriptions.add(subscription);
    if (this.isLive) this._subscribe([subscription]);
    return subscription;
  }

  call(procedure, args = [], kwargs = {}) {
    if (!this.isLive) return Promise.reject(new WampError("signalbox.error.not_connected", "there is no connection"));
    return new Promise((resolve, reject) => {
      this._request((request) => [CALL, request, {}, procedure, args, kwargs], {
        done: ([, , , results = [], keywords = {}]) => resolve({ args: results, kwargs: keywords }),
        failed: reject,
      });
    });
  }

  _helloDetails() {
    const identity = this.authid ? { authmethods: ["ticket"], authid: this.authid } : { authmethods: ["anonymous"] };
    return { roles: ROLES, agent: "Signalbox page", ...identity };
  }

  _heard(message) {
    this.heardAt = Date.now();
    const [type, first, second] = message;
    if (type === EVENT) this.byId.get(first)?.take(message);
    else if (type === WELCOME) this._joined(second);
    else if (type === CHALLENGE) this._send([AUTHENTICATE, this.ticket, {}]);
    else if (type === ABORT) this._aborted(second, message[3]?.[0] ?? first.message);
    else if (type === GOODBYE) this._dismissed(first, second);
    else if (type === ERROR) this._settle(second, (one) => one.failed(new WampError(message[4], message[5]?.[0])));
    else if (type === UNSUBSCRIBED && first === 0) this._revoked(second);
    else if ([SUBSCRIBED, UNSUBSCRIBED, RESULT].includes(type)) this._settle(first, (one) => one.done(message));
  }

  _joined(details) {
    clearTimeout(this.joinTimer);
    clearInterval(this.watchTimer);
    this.watchTimer = setInterval(() => Date.now() - this.heardAt > PROBE_AFTER_MS && this._probe(), LOOK_EVERY_MS);
    this.attempts = 0;
    this.joins += 1;
    this.details = details;
    this._tell(Phase.LIVE);
    this._subscribe([...this.subscriptions]);
  }

  _aborted(reason, message) {
    if (FINAL.has(reason)) {
      this._drop();
      this._tell(Phase.REFUSED, message ?? reason, reason);
    } else this._lost(message ?? reason);
  }

  _dismissed(details, reason) {
    this._send([GOODBYE, {}, "wamp.close.goodbye_and_out"]);
    this._drop();
    this._tell(Phase.REFUSED, details.message ?? "the session was ended", reason);
  }

  /** Subscribe, and look once for the sign that all of the past has come: the reply to a call, which stands behind it. */
  _subscribe(subscriptions) {
    const begins = new Map(subscriptions.map((one) => [one, one.begins + 1]));
    for (const subscription of subscriptions) this._subscribeOne(subscription);
    if (!subscriptions.length) return;
    const done = () => {
      for (const [one, begin] of begins) if (one.begins === begin && one.id !== null) one.caughtUp();
    };
    this._request((request) => [CALL, request, {}, "wamp.subscription.lookup", [subscriptions[0].uri]], {
      done,
      failed: (error) => error.uri !== LOST && done(),
    });
  }

  _subscribeOne(subscription) {
    const options = subscription.begin(this.details._at ?? new Date().toISOString());
    this._request((request) => [SUBSCRIBE, request, options, subscription.uri], {
      done: ([, , id]) => {
        this.byId.set(id, subscription);
        subscription.begun(id);
      },
      failed: (error) => {
        if (error.uri !== LOST) subscription.ended(error);
      },
    });
  }

  _unsubscribe(subscription) {
    this.subscriptions.delete(subscription);
    if (!this.isLive || subscription.id === null) return;
    // Events may still come until the reply, but to nobody.
    this.byId.delete(subscription.id);
    this._request((request) => [UNSUBSCRIBE, request, subscription.id], { done() {}, failed() {} });
  }

  _revoked({ subscription: id, reason }) {
    const subscription = this.byId.get(id);
    this.byId.delete(id);
    if (subscription) subscription.ended(new WampError(reason, "the permission was taken away"));
  }

  _request(message, outcome) {
    const request = this.nextRequest++;
    this.pending.set(request, outcome);
    this._send(message(request));
  }

  _settle(request, tell) {
    const outcome = this.pending.get(request);
    this.pending.delete(request);
    if (outcome) tell(outcome);
  }

  _send(message) {
    this.socket.send(JSON.stringify(message));
  }

  _probe() {
    if (!this.isLive) return;
    const given = setTimeout(() => this._lost("no answer"), PROBE_MS);
    const answered = () => clearTimeout(given);
    this.call("wamp.subscription.lookup", ["signalbox.probe"]).then(answered, answered);
  }

  _lost(reason) {
    this._drop();
    const longest = Math.min(FIRST_WAIT_MS * 2 ** this.attempts++, LONGEST_WAIT_MS);
    const wait = longest * (0.5 + this.random() / 2);
    this._tell(Phase.WAITING, reason, undefined, Date.now() + wait);
    this.retryTimer = setTimeout(() => this.start(), wait);
  }

  _drop() {
    for (const timer of [this.joinTimer, this.retryTimer, this.watchTimer]) clearTimeout(timer);
    const { socket, pending } = this;
    this.socket = undefined;
    this.pending = new Map();
    this.byId = new Map();
    this.nextRequest = 1;
    if (socket) {
      socket.onopen = socket.onmessage = socket.onclose = null;
      socket.close();
    }
    for (const subscription of this.subscriptions) subscription.interrupted();
    for (const outcome of pending.values()) {
      outcome.failed(new WampError(LOST, "the connection was lost"));
    }
  }

  _tell(phase, reason = "", uri = "", retryAt = null) {
    this.state = { phase, reason, uri, retryAt };
    this.watch(this.state);
  }
}
