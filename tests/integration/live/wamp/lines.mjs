// The protocol of the JavaScript programs: a line of JSON on standard input is a command, one on standard output is its
// result or something that the client has received.
import { createInterface } from "node:readline";

/** @typedef {{ url: string, realm: string, method: string, user: string, secret: string }} Login */

/**
 * A command: its `do` is subscribe, unsubscribe, publish or call.
 * @typedef {object} Command
 * @property {number} id
 * @property {string} do
 * @property {string} name
 * @property {string} topic
 * @property {string} procedure
 * @property {Record<string, any>} [options]
 * @property {any[]} [args]
 * @property {Record<string, any>} [kwargs]
 */

/** @typedef {{ execute: (command: Command) => Promise<unknown> }} Driver */

/**
 * Print a line.
 * @param {object} document
 */
export const print = (document) => console.log(JSON.stringify(document));

/**
 * Create a client from the first line, the login, and execute the commands of all others.
 * @param {(login: Login) => Driver} create
 */
export function serve(create) {
  /** @type {Driver | null} */
  let driver = null;
  const lines = createInterface({ input: process.stdin });
  lines.on("line", async (text) => {
    const document = JSON.parse(text);
    if (!driver) {
      driver = create(document);
      return;
    }
    try {
      print({ id: document.id, result: (await driver.execute(document)) ?? null });
    } catch (error) {
      print({ id: document.id, ...described(error) });
    }
  });
  lines.on("close", () => process.exit(0));
}

/**
 * Return the URI and the text of an error of either client.
 * @param {any} error
 */
function described(error) {
  const uri = error.errorUri ?? error.error ?? String(error);
  return { error: uri, text: String((error.args ?? error.argsList ?? [])[0] ?? error.message ?? "") };
}
