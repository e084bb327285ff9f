// Tails a container's log and follows its record: node example.js trial.container.42
import { Live } from "./signalbox_live.js";

const { SIGNALBOX_URL: url, SIGNALBOX_REALM: realm, SIGNALBOX_USER: user, SIGNALBOX_TICKET: ticket } = process.env;
const container = process.argv[2];

new Live({ url, realm, user, ticket })
  .follow(`${container}.log.`, (event) => console.log(`log: ${event.args[0]}`), { match: "prefix", last: 100 })
  .follow(`${container}.record`, (event) => console.log(`record: ${event.args[0].state}`), { latest: true })
  .run();
