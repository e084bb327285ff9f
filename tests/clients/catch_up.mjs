// Runs the cases of tests/cases/catch_up.json with the cursor of a client: node catch_up.mjs page|example CASES MODULE
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const FRAME_BYTES = 32_768; // API Gateway closes a connection on which a larger frame comes

/** @typedef {{ topic: string, sequence: number | null, publication: number }} Event */
/** @typedef {{ topics: { count: number, padding: number }, sequence: number, publication: number }} EventOfTopics */
/** @typedef {{ topic: string, match: any, last: number, retained: boolean }} Options */
/** @typedef {{ topic: string, from: number, to: number }} Gap */

/**
 * @typedef {object} Connection
 * @property {string} joined_at
 * @property {Record<string, any>} requested
 * @property {Event[]} [retained]
 * @property {(Event | EventOfTopics)[]} past
 * @property {boolean} is_caught_up
 * @property {string} [live_at]
 * @property {(Event | EventOfTopics)[]} [live]
 */

/**
 * @typedef {object} Case
 * @property {string} name
 * @property {Options} subscription
 * @property {Connection[]} connections
 * @property {(number | { from: number, to: number })[]} delivered
 * @property {Gap[]} [gaps]
 */

/**
 * A client as the cases drive it; `gaps` is null when it does not report them.
 * @typedef {object} Client
 * @property {string} style
 * @property {(at: string) => { history: any, isRetained: boolean | null }} begin
 * @property {(event: Event, at: string, isRetained: boolean) => boolean} receive
 * @property {(at: string) => void} caughtUp
 * @property {Gap[] | null} gaps
 */

const [client, cases, module] = process.argv.slice(2);
const loaded = await import(pathToFileURL(module).href);
const create = { page, example }[client];
if (!create) throw new Error(`no such client: ${client}`);
/** @type {{ cases: Case[], goodbyes: { reason: string, message: string }[] }} */
const document = JSON.parse(readFileSync(cases, "utf8"));
for (const one of document.cases) run(one, create(one.subscription));
if (client === "example") document.goodbyes.forEach(endWith);

/**
 * @param {Options} subscription
 * @returns {Client}
 */
function page({ topic, match, last, retained }) {
  /** @type {Gap[]} */
  const gaps = [];
  let isDelivered = false;
  const handlers = {
    onEvent: () => {
      isDelivered = true;
    },
    onGap: (/** @type {Gap} */ gap) => gaps.push(gap),
  };
  const subscription = new loaded.Subscription(topic, { match, history: last ? { last } : null, retained }, handlers);
  return {
    style: "by_number",
    begin: (at) => {
      const { _history: history = null, get_retained: isRetained = false } = subscription.begin(at);
      return { history, isRetained };
    },
    receive: ({ topic, sequence, publication }, at, isRetained) => {
      isDelivered = false;
      const details = { topic, _at: at, retained: isRetained, ...(sequence === null ? {} : { _seq: sequence }) };
      subscription.receive([36, 1, publication, details]);
      return isDelivered;
    },
    caughtUp: () => subscription.caughtUp(),
    gaps,
  };
}

/**
 * @param {Options} subscription
 * @returns {Client}
 */
function example({ match, last }) {
  const cursor = new loaded.Cursor(match, last);
  return {
    style: "by_publication",
    begin: () => ({ history: cursor.begin(), isRetained: null }),
    receive: ({ publication }, at, isRetained) => cursor.isNew({ publication, retained: isRetained }, Date.parse(at)),
    caughtUp: (at) => cursor.caughtUp(Date.parse(at)),
    gaps: null,
  };
}

/** @param {{ reason: string, message: string }} goodbye */
function endWith(goodbye) {
  /** @type {string[]} */
  const failures = [];
  const failed = (/** @type {Error} */ error) => failures.push(error.message);
  new loaded.Live({ url: "", realm: "r", user: "u", ticket: "t", failed });
  const isOver = /** @type {any} */ (globalThis).connection.onclose("closed", goodbye);
  assert.deepEqual([isOver, failures], [true, [`${goodbye.reason} ${goodbye.message}`]]);
}

/**
 * @param {Case} one
 * @param {Client} client
 */
function run({ name, subscription, connections, delivered, gaps = [] }, client) {
  /** @type {number[]} */
  const publications = [];
  for (const connection of connections) {
    const { history, isRetained } = client.begin(connection.joined_at);
    checkRequest(name, history, connection.requested[client.style]);
    if (isRetained !== null) assert.equal(isRetained, subscription.retained, name);
    /**
     * @param {(Event | EventOfTopics)[]} [events]
     * @param {string} [at]
     */
    const deliver = (events = [], at = connection.joined_at, isRetained = false) => {
      const all = events.flatMap(expanded);
      publications.push(...all.filter((one) => client.receive(one, at, isRetained)).map((one) => one.publication));
    };
    deliver(connection.retained, connection.joined_at, true);
    deliver(connection.past);
    if (connection.is_caught_up) client.caughtUp(connection.joined_at);
    deliver(connection.live, connection.live_at);
  }
  assert.deepEqual(publications, delivered.flatMap(range), name);
  if (client.gaps) assert.deepEqual(client.gaps, gaps, name);
}

/**
 * @param {string} name
 * @param {any} history
 * @param {any} expected
 */
function checkRequest(name, history, expected) {
  const text = JSON.stringify(history).replaceAll(".000Z", "Z");
  if (expected?.after?.at_least === undefined) {
    assert.deepEqual(JSON.parse(text), expected, name);
    return;
  }
  const { since, topics } = JSON.parse(text).after;
  const names = Object.keys(topics);
  assert.equal(since, expected.after.since, name);
  assert.ok(names.length >= expected.after.at_least, name);
  assert.ok(
    names.some((topic) => topic.startsWith("a.0499.")),
    `${name} The latest topic is not named.`,
  );
  assert.ok(
    Object.values(topics).every((number) => number === 1),
    name,
  );
  assert.ok(text.length < FRAME_BYTES, name);
}

/**
 * @param {Event | EventOfTopics} event
 * @returns {Event[]}
 */
function expanded(event) {
  if (!("topics" in event)) return [event];
  return Array.from({ length: event.topics.count }, (_, number) => ({
    topic: `a.${String(number).padStart(4, "0")}.${"x".repeat(event.topics.padding)}`,
    sequence: event.sequence,
    publication: event.publication + number,
  }));
}

/** @param {number | { from: number, to: number }} one */
function range(one) {
  if (typeof one === "number") return [one];
  return Array.from({ length: one.to - one.from + 1 }, (_, index) => one.from + index);
}
