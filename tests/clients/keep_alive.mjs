// Usage: keep_alive.mjs MODULE: the example sends before API Gateway ends its idle connection, and stops with it.
import assert from "node:assert/strict";
import { mock } from "node:test";
import { pathToFileURL } from "node:url";

const IDLE_MS = 600_000; // API Gateway's quota

mock.timers.enable({ apis: ["setInterval"] });
const { Live } = await import(pathToFileURL(process.argv[2]).href);
new Live({ url: "", realm: "", user: "", ticket: "" }).run();
/** @type {unknown[][]} */
const calls = [];
/** @param {unknown[]} call */
const record = async (...call) => calls.push(call);
const session = { call: record };
// The test's stand-in of autobahn leaves its connection there.
const { connection } = /** @type {any} */ (globalThis);

connection.onopen(session);
mock.timers.tick(IDLE_MS - 1);
assert.equal(calls.length, 1);
connection.onclose("lost", {});
mock.timers.tick(IDLE_MS);
assert.equal(calls.length, 1);
