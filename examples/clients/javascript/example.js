// Prints a container's log and the states of its record: node example.js trial.container.42
import { Live } from "./signalbox_live.js";

const [container] = process.argv.slice(2);

new Live({ url: setting("URL"), realm: setting("REALM"), user: setting("USER"), ticket: setting("TICKET") })
  .follow(`${container}.log.`, (event) => console.log(`log: ${event.args[0]}`), { match: "prefix", last: 100 })
  .follow(`${container}.record`, (event) => console.log(`record: ${event.args[0].state}`), { latest: true })
  .run();

/** @param {string} name */
function setting(name) {
  const value = process.env[`SIGNALBOX_${name}`];
  if (!value) throw new Error(`SIGNALBOX_${name} is not set`);
  return value;
}
