// What both JavaScript programs share: lines on standard input say what to do, lines on standard output what came of it.
import { createInterface } from "node:readline";

export const tell = (told) => console.log(JSON.stringify(told));

export function serve(make) {
  let driver = null;
  const lines = createInterface({ input: process.stdin });
  lines.on("line", async (text) => {
    const said = JSON.parse(text);
    if (!driver) {
      driver = make(said);
      return;
    }
    try {
      tell({ id: said.id, result: (await driver.carryOut(said)) ?? null });
    } catch (error) {
      const uri = error.errorUri ?? error.error ?? String(error);
      tell({ id: said.id, error: uri, text: String((error.args ?? error.argsList ?? [])[0] ?? error.message ?? "") });
    }
  });
  lines.on("close", () => process.exit(0));
}
