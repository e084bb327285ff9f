// Judges calls by IAM's rules: simulations as a JSON array on stdin, results on stdout, in the same order.
// Run with the path of `node_modules`.

import { createRequire } from "node:module";
import { json } from "node:stream/consumers";

const { runSimulation } = createRequire(`${process.argv[2]}/`)("@cloud-copilot/iam-simulate");

/** @type {any} */
const simulations = await json(process.stdin);
const results = [];
for (const simulation of simulations) {
  const { overallResult, errors, result } = await runSimulation(simulation, {});
  results.push({ outcome: overallResult, errors, ignored: result?.ignoredContextKeys });
}
process.stdout.write(JSON.stringify(results));
