// Usage: omit_past.mjs MODULE CASES: the page goes on without past events that the router refuses as too many, and
// ends with its session.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const { Client } = await import(pathToFileURL(process.argv[2]).href);
/** @type {any[]} */
const sent = [];
/** @type {any} */
const socket = { send: (/** @type {string} */ text) => sent.push(JSON.parse(text)), close() {} };
/** @type {string[]} */
const omitted = [];
const client = new Client({ url: "", realm: "r" }, () => {}, { openSocket: () => socket });
const receive = (/** @type {unknown[]} */ ...message) => socket.onmessage({ data: JSON.stringify(message) });
const options = { match: "prefix", history: { last: 9 }, retained: true };

client.subscribe("logs.", options, { onOmitted: (/** @type {string} */ message) => omitted.push(message) });
client.start();
socket.onopen();
receive(2, 1, { _at: "2026-11-21T20:00:00Z" });
const [first] = sent.filter(([type]) => type === 32);
receive(33, first[1], 5);
receive(35, 0, { subscription: 5, reason: "wamp.error.payload_size_exceeded", message: "too many" });
client.stop();

assert.equal(sent[0][2].roles.subscriber.features._past_refusal, true);
assert.deepEqual(first[2], { match: "prefix", _history: { last: 9 }, get_retained: true });
assert.deepEqual(sent.filter(([type]) => type === 32)[1][2], { match: "prefix" });
assert.deepEqual(omitted, ["too many"]);

for (const { reason, message } of JSON.parse(readFileSync(process.argv[3], "utf8")).goodbyes) {
  /** @type {any[]} */
  const states = [];
  /** @type {any[]} */
  const sockets = [];
  const openSocket = () => {
    sockets.push(socket);
    return socket;
  };
  const ended = new Client({ url: "", realm: "r" }, (/** @type {any} */ state) => states.push(state), { openSocket });
  ended.start();
  socket.onopen();
  receive(2, 1, { _at: "2026-11-21T20:00:00Z" });
  receive(6, { message }, reason);
  const { phase, reason: shown } = states.at(-1);
  assert.deepEqual([phase, shown, sockets.length], ["refused", message, 1]);
}
