// A dialog with everything that is known about a line.

import { el } from "./dom.js";

/** @import { Line } from "./lines.js" */

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
    ["Published", new Date(event.at).toISOString()],
    ["Topic", event.topic],
    ["Number", event.seq],
    ["Publication", event.publication],
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
      el("button", { type: "button", onclick: (pressed) => copy(line.text, pressed.target) }, "Copy line"),
      el("button", { class: "primary", autofocus: true }, "Close"),
    ),
  );
  document.body.append(dialog);
  dialog.showModal();
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
