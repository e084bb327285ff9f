// A dialog with everything that is known about a line.

import { el } from "./dom.js";

/** @import { Line } from "./lines.js" */

/** The hosts of a local stage. */
const LOCAL_HOSTS = new Set(["127.0.0.1", "localhost", "[::1]"]);

/**
 * Open the dialog. Notes of the page itself have no details.
 * @param {Line | undefined} line
 */
export function showLine(line) {
  if (!line?.event) return;
  const { event } = line;
  const kwargs = Object.keys(event.kwargs).length ? { kwargs: event.kwargs } : {};
  const payload = JSON.stringify({ args: event.args, ...kwargs }, null, 2);
  /** @type {[string, unknown][]} */
  const facts = [
    ["Written", line.written || null],
    ["Published", new Date(event.at).toISOString()],
    ["Topic", event.topic],
    ["Number", event.seq],
    ["Publication", event.publication],
    ["Trace", traceCommand(event.publication)],
    ...Object.entries(event.headers),
  ];
  const known = facts.filter(([, value]) => value !== null);
  /** @type {HTMLDialogElement} */
  const dialog = el(
    "dialog",
    { class: "details", "aria-label": "Line", onclose: () => dialog.remove() },
    el("pre", { class: "whole" }, line.text),
    el(
      "dl",
      {},
      known.map(([name, value]) => [el("dt", {}, name), el("dd", {}, String(value))]),
    ),
    el("details", {}, el("summary", {}, "Payload"), el("pre", {}, payload)),
    el(
      "form",
      { method: "dialog", class: "actions" },
      copyButton("Copy line", line.text),
      copyButton("Copy trace command", traceCommand(event.publication)),
      el("button", { class: "primary", autofocus: true }, "Close"),
    ),
  );
  document.body.append(dialog);
  dialog.showModal();
}

/**
 * Return the command that shows the way of a publication. The page itself may not read the history.
 * @param {number} publication
 */
function traceCommand(publication) {
  return `signalbox trace ${publication}${LOCAL_HOSTS.has(location.hostname) ? "" : " --aws"}`;
}

/**
 * @param {string} label
 * @param {string} text
 */
function copyButton(label, text) {
  return el("button", { type: "button", onclick: (pressed) => copy(text, pressed.target) }, label);
}

/**
 * @param {string} text
 * @param {HTMLButtonElement} button
 */
async function copy(text, button) {
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
  } catch {
    button.textContent = "Clipboard not available"; // browsers require TLS for it
  }
}
