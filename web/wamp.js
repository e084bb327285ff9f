// A WAMP client that reconnects, and subscribes again without losing or repeating an event.

import { messageOf } from "./dom.js";
import { Subscription } from "./subscription.js";

/** @import { Match } from "./cursor.js" */
/** @import { EventMessage, Handlers } from "./subscription.js" */

/** @typedef {"connecting" | "live" | "waiting" | "refused" | "closed"} ConnectionPhase */

/**
 * The state of the connection. `uri` is the router's reason; `retryAt` is when the next attempt begins.
 * @typedef {{ phase: ConnectionPhase, reason: string, uri: string, retryAt: number }} ConnectionState
 */

/** @typedef {{ args: any[], kwargs: Record<string, any> }} Result */

/**
 * Returns a token of an identity provider that is not about to end. An error with `isTemporary` may pass.
 * @typedef {() => Promise<string>} TokenSource
 */

/** A decoded message. @typedef {[type: number, ...any[]]} Message */

/**
 * What happens with the reply to a request.
 * @typedef {{ done: (reply: Message) => void, failed: (error: WampError) => void }} Pending
 */

/**
 * The parts of a WebSocket that the client uses.
 * @typedef {Pick<WebSocket, "send" | "close" | "onopen" | "onmessage" | "onclose"> & { protocol?: string }} Socket
 */

/** The phases of the connection. */
export const Phase = Object.freeze({
  CONNECTING: /** @type {const} */ ("connecting"),
  LIVE: /** @type {const} */ ("live"),
  WAITING: /** @type {const} */ ("waiting"), // for the next attempt
  REFUSED: /** @type {const} */ ("refused"), // by the router, for a reason that another attempt would meet again
  CLOSED: /** @type {const} */ ("closed"),
});

const HELLO = 1;
const WELCOME = 2;
const ABORT = 3;
const CHALLENGE = 4;
const AUTHENTICATE = 5;
const GOODBYE = 6;
const ERROR = 8;
const SUBSCRIBE = 32;
const SUBSCRIBED = 33;
const UNSUBSCRIBE = 34;
const UNSUBSCRIBED = 35;
const EVENT = 36;
const CALL = 48;
const RESULT = 50;

const SUBPROTOCOL = "wamp.2.json";
const BATCHED_SUBPROTOCOL = "wamp.2.json.batched"; // several messages at once, each with a separator behind it
const SEPARATOR = "\x1e";
const ROLES = {
  subscriber: { features: { pattern_based_subscription: true, subscription_revocation: true, _past_refusal: true } },
  caller: {},
};
const TOO_MUCH_PAST = "wamp.error.payload_size_exceeded"; // why the router ends a subscription that may go on without
// Reasons that another attempt with the same name and ticket would meet again.
const FINAL_REASONS = new Set([
  "wamp.error.authentication_denied",
  "wamp.error.authentication_failed",
  "wamp.error.authentication_required",
  "wamp.error.invalid_uri",
  "wamp.error.no_matching_auth_method",
  "wamp.error.no_such_realm",
  "wamp.error.not_authorized",
]);
const CONNECTION_LOST = "signalbox.error.connection_lost";
// Reasons of a GOODBYE after which a client with a new token joins again.
const TOKEN_OVER = new Set(["signalbox.close.token_expired", "signalbox.close.role_changed"]);
const JOIN_TIMEOUT_MS = 15_000;
const FIRST_DELAY_MS = 500;
const LONGEST_DELAY_MS = 15_000;
// API Gateway closes a connection that was idle for ten minutes, and a lost network closes none: probe idle ones.
const PROBE_AFTER_MS = 120_000;
const IDLE_CHECK_MS = 30_000;
const PROBE_TIMEOUT_MS = 10_000;

/** An error that the router returned; `uri` is its WAMP error URI. */
export class WampError extends Error {
  /**
   * @param {string} uri
   * @param {string} [message]
   */
  constructor(uri, message) {
    super(message || uri);
    this.uri = uri;
  }
}

/** A client of one realm, over one connection at a time. */
export class Client {
  /**
   * @param {{ url: string, realm: string, authid?: string, ticket?: string, token?: TokenSource }} login without
   *   `authid` and `token`, it joins as anonymous
   * @param {(state: ConnectionState) => void} [onState] called on each change of the connection
   * @param {{ openSocket?: (url: string) => Socket, random?: () => number }} [environment] replaced by tests
   */
  constructor({ url, realm, authid = "", ticket = "", token }, onState = () => {}, environment = {}) {
    this.url = url;
    this.realm = realm;
    this.authid = authid;
    this.ticket = ticket;
    this.token = token;
    this.onState = onState;
    this.openSocket = environment.openSocket ?? ((at) => new WebSocket(at, [BATCHED_SUBPROTOCOL, SUBPROTOCOL]));
    this.random = environment.random ?? Math.random;
    /** @type {Set<Subscription>} */
    this.subscriptions = new Set();
    /** @type {Map<number, Subscription>} by the router's id in this session */
    this.byId = new Map();
    /** @type {Map<number, Pending>} by request */
    this.pending = new Map();
    this.nextRequest = 1;
    /** How many attempts have failed since the last session. */
    this.attempts = 0;
    /** How many sessions have begun. */
    this.joins = 0;
    /** @type {Record<string, any>} the details of WELCOME */
    this.details = {};
    this.lastMessageAt = 0;
    /** @type {Socket | undefined} */
    this.socket = undefined;
    /** @type {number | undefined} */
    this.joinTimer = undefined;
    /** @type {number | undefined} */
    this.retryTimer = undefined;
    /** @type {number | undefined} */
    this.idleTimer = undefined;
    /** @type {ConnectionState} */
    this.state = { phase: Phase.CLOSED, reason: "", uri: "", retryAt: 0 };
  }

  /** Whether a session is open. */
  get isLive() {
    return this.state.phase === Phase.LIVE;
  }

  /** Connect now. */
  start() {
    this._setState(Phase.CONNECTING);
    clearTimeout(this.retryTimer);
    if (this.token) this._openWithToken(this.token);
    else this._open();
  }

  /**
   * Connect when there is a token: the router waits for it only a few seconds.
   * @param {TokenSource} source
   */
  async _openWithToken(source) {
    const { state } = this;
    try {
      this.ticket = await source();
      if (this.state === state) this._open();
    } catch (error) {
      if (this.state !== state) return; // stopped, or another attempt began
      const { isTemporary } = /** @type {{ isTemporary?: boolean }} */ (error);
      if (isTemporary) this._lost(messageOf(error));
      else this._setState(Phase.REFUSED, messageOf(error));
    }
  }

  _open() {
    let socket;
    try {
      socket = this.openSocket(this.url);
    } catch (error) {
      this._setState(Phase.REFUSED, messageOf(error));
      return;
    }
    this.socket = socket;
    this.joinTimer = setTimeout(() => this._lost("no answer"), JOIN_TIMEOUT_MS);
    socket.onopen = () => this._send([HELLO, this.realm, this._helloDetails()]);
    socket.onmessage = ({ data }) => {
      const texts = data.split(SEPARATOR).filter(Boolean);
      for (const text of texts) if (this.socket === socket) this._receive(JSON.parse(text));
    };
    socket.onclose = ({ reason }) => this._lost(reason);
  }

  /** Close the session and the connection. */
  stop() {
    if (this.isLive) this._send([GOODBYE, {}, "wamp.close.goodbye_and_out"]);
    this._drop();
    this._setState(Phase.CLOSED);
  }

  /** Connect now if an attempt is due later, else probe the connection: the network may have changed. */
  wake() {
    if (this.state.phase === Phase.WAITING) this.start();
    else if (this.isLive) this._probe();
  }

  /**
   * Subscribe in this session and in all that follow, until the subscription's `stop()`.
   * @param {string} uri
   * @param {{ match?: Match, history?: Record<string, unknown> | null, retained?: boolean }} options
   * @param {Handlers} handlers
   */
  subscribe(uri, options, handlers) {
    /** @type {Subscription} */
    const subscription = new Subscription(uri, options, handlers, () => this._unsubscribe(subscription));
    this.subscriptions.add(subscription);
    if (this.isLive) this._subscribe([subscription]);
    return subscription;
  }

  /**
   * Call a procedure. Rejects with a `WampError`.
   * @param {string} procedure
   * @param {unknown[]} [args]
   * @param {Record<string, unknown>} [kwargs]
   * @returns {Promise<Result>}
   */
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
    const authmethods = [this.authid || this.token ? "ticket" : "anonymous"];
    return { roles: ROLES, agent: "Signalbox page", authmethods, ...(this.authid ? { authid: this.authid } : {}) };
  }

  /** @param {Message} message */
  _receive(message) {
    this.lastMessageAt = Date.now();
    const [type, first, second] = message;
    if (type === EVENT) this.byId.get(first)?.receive(/** @type {EventMessage} */ (message));
    else if (type === ERROR) this._settle(second, (one) => one.failed(new WampError(message[4], message[5]?.[0])));
    else if (type === UNSUBSCRIBED && first === 0) this._revoked(second);
    else if (type === SUBSCRIBED || type === UNSUBSCRIBED || type === RESULT) {
      this._settle(first, (one) => one.done(message));
    } else this._receiveOfSession(message);
  }

  /** @param {Message} message */
  _receiveOfSession([type, first, second, args]) {
    if (type === WELCOME) this._joined(second);
    else if (type === CHALLENGE) this._send([AUTHENTICATE, this.ticket, {}]);
    else if (type === ABORT) this._aborted(second, args?.[0] ?? first.message);
    else if (type === GOODBYE) this._closedByRouter(first, second);
  }

  /** @param {Record<string, any>} details */
  _joined(details) {
    clearTimeout(this.joinTimer);
    clearInterval(this.idleTimer);
    const isIdle = () => Date.now() - this.lastMessageAt > PROBE_AFTER_MS;
    this.idleTimer = setInterval(() => isIdle() && this._probe(), IDLE_CHECK_MS);
    this.attempts = 0;
    this.joins += 1;
    this.details = details;
    const subscriptions = [...this.subscriptions]; // those that `onState` adds subscribe at once
    this._setState(Phase.LIVE);
    this._subscribe(subscriptions);
  }

  /**
   * @param {string} reason
   * @param {string | undefined} message
   */
  _aborted(reason, message) {
    if (FINAL_REASONS.has(reason)) {
      this._drop();
      this._setState(Phase.REFUSED, message ?? reason, reason);
    } else this._lost(message ?? reason);
  }

  /**
   * @param {Record<string, any>} details
   * @param {string} reason
   */
  _closedByRouter(details, reason) {
    this._send([GOODBYE, {}, "wamp.close.goodbye_and_out"]);
    if (this.token && TOKEN_OVER.has(reason)) {
      this._lost(details.message ?? reason);
      return;
    }
    this._drop();
    this._setState(Phase.REFUSED, details.message ?? "the session was closed", reason);
  }

  /**
   * Subscribe, then call a procedure: its reply comes after all events of the requested history.
   * @param {Subscription[]} subscriptions
   */
  _subscribe(subscriptions) {
    const [first] = subscriptions;
    if (!first) return;
    const sessions = new Map(subscriptions.map((one) => [one, one.sessions + 1]));
    for (const subscription of subscriptions) this._subscribeOne(subscription);
    const done = () => {
      for (const [one, session] of sessions) if (one.sessions === session && one.id !== null) one.caughtUp();
    };
    this._request((request) => [CALL, request, {}, "wamp.subscription.lookup", [first.uri]], {
      done,
      failed: (error) => error.uri !== CONNECTION_LOST && done(),
    });
  }

  /** @param {Subscription} subscription */
  _subscribeOne(subscription) {
    const options = subscription.begin(this.details._at ?? new Date().toISOString());
    this._request((request) => [SUBSCRIBE, request, options, subscription.uri], {
      done: ([, , id]) => {
        this.byId.set(id, subscription);
        subscription.subscribed(id);
      },
      failed: (error) => {
        if (error.uri !== CONNECTION_LOST) subscription.ended(error);
      },
    });
  }

  /** @param {Subscription} subscription */
  _unsubscribe(subscription) {
    this.subscriptions.delete(subscription);
    if (!this.isLive || subscription.id === null) return;
    this.byId.delete(subscription.id); // events that come before the reply are dropped
    const { id } = subscription;
    this._request((request) => [UNSUBSCRIBE, request, id], { done() {}, failed() {} });
  }

  /** @param {{ subscription: number, reason: string, message?: string }} details */
  _revoked({ subscription: id, reason, message }) {
    const subscription = this.byId.get(id);
    this.byId.delete(id);
    if (subscription && reason === TOO_MUCH_PAST) {
      subscription.omitPast(message ?? reason);
      this._subscribe([subscription]);
    } else if (subscription) subscription.ended(new WampError(reason, "the permission was revoked"));
  }

  /**
   * @param {(request: number) => Message} message
   * @param {Pending} pending
   */
  _request(message, pending) {
    const request = this.nextRequest++;
    this.pending.set(request, pending);
    this._send(message(request));
  }

  /**
   * @param {number} request
   * @param {(pending: Pending) => void} settle
   */
  _settle(request, settle) {
    const pending = this.pending.get(request);
    this.pending.delete(request);
    if (pending) settle(pending);
  }

  /** @param {Message} message */
  _send(message) {
    const { socket } = this;
    if (socket) socket.send(JSON.stringify(message) + (socket.protocol === BATCHED_SUBPROTOCOL ? SEPARATOR : ""));
  }

  /** Call a procedure, and treat the connection as lost when there is no reply in time. */
  _probe() {
    if (!this.isLive) return;
    const timeout = setTimeout(() => this._lost("no answer"), PROBE_TIMEOUT_MS);
    const answered = () => clearTimeout(timeout);
    this.call("wamp.subscription.lookup", ["signalbox.probe"]).then(answered, answered);
  }

  /** @param {string} reason */
  _lost(reason) {
    this._drop();
    const longest = Math.min(FIRST_DELAY_MS * 2 ** this.attempts++, LONGEST_DELAY_MS);
    const delay = longest * (0.5 + this.random() / 2);
    this._setState(Phase.WAITING, reason, "", Date.now() + delay);
    this.retryTimer = setTimeout(() => this.start(), delay);
  }

  _drop() {
    for (const timer of [this.joinTimer, this.retryTimer, this.idleTimer]) clearTimeout(timer);
    const { socket, pending } = this;
    this.socket = undefined;
    this.pending = new Map();
    this.byId = new Map();
    this.nextRequest = 1;
    if (socket) {
      socket.onopen = null;
      socket.onmessage = null;
      socket.onclose = null;
      socket.close();
    }
    for (const subscription of this.subscriptions) subscription.interrupted();
    for (const one of pending.values()) one.failed(new WampError(CONNECTION_LOST, "the connection was lost"));
  }

  /**
   * @param {ConnectionPhase} phase
   * @param {string} [reason]
   * @param {string} [uri]
   * @param {number} [retryAt]
   */
  _setState(phase, reason = "", uri = "", retryAt = 0) {
    this.state = { phase, reason, uri, retryAt };
    this.onState(this.state);
  }
}
