// All that is known of a line, in a dialog.

import { el } from "./dom.js";

export function showLine(line) {
  if (!line?.event) return;
  const { event } = line;
  const payload = JSON.stringify(
    { args: event.args, ...(Object.keys(event.kwargs).length ? { kwargs: event.kwargs } : {}) },
    null,
    2,
  );
  const facts = [
    ["Published", new Date(event.at).toISOString()],
    ["Topic", event.topic],
    ["Number", event.seq],
    ["Publication", event.publication],
    ...Object.entries(event.headers),
  ].filter(([, value]) => value !== null);
  const dialog = el(
    "dialog",
    { class: "details", "aria-label": "Line", onclose: () => dialog.remove() },
    el("pre", { class: "whole" }, line.text),
    el(
      "dl",
      {},
      facts.map(([name, value]) => [el("dt", {}, name), el("dd", {}, String(value))]),
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

async function copy(text, button) {
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
  } catch {
    button.textContent = "Not allowed here"; // without TLS, browsers keep the clipboard closed
  }
}
