// The view of a record: its latest state, what changed last, and the states before.

import { ago, clock, count, el } from "./dom.js";

const TICK_MS = 5_000; // how old something is, is told anew
const SPOKEN = 3; // changes that are said in full
const SHOWN_VERSIONS = 200;

export class RecordView {
  constructor(model) {
    this.model = model;
    this.chosen = null;
    this.body = el("tbody");
    this.caption = el("caption");
    this.versions = el("ol", { class: "versions", reversed: true });
    this.empty = el("p", { class: "empty" });
    this.spoken = el("p", { class: "visually-hidden", role: "status" });
    this.back = el(
      "button",
      { type: "button", class: "back", hidden: true, onclick: () => this._choose(null) },
      "Back to the latest state",
    );
    this.table = el(
      "table",
      { class: "fields" },
      this.caption,
      el(
        "thead",
        {},
        el(
          "tr",
          {},
          ["Field", "Value", "Changed"].map((name) => el("th", { scope: "col" }, name)),
        ),
      ),
      this.body,
    );
    this.element = el(
      "section",
      { class: "record-view", "aria-label": model.title },
      el("h1", { class: "visually-hidden" }, `Record ${model.title}`),
      this.spoken,
      el("div", { class: "shown" }, this.table, this.back, this.empty),
      el("aside", { "aria-label": "States" }, el("h2", {}, "States"), this.versions),
    );
  }

  attach() {
    this.told = this.model.history.latest;
    this.model.onchange = () => this.schedule();
    // What is selected to be copied is not written anew.
    this.ticking = setInterval(() => getSelection().isCollapsed && this.schedule(), TICK_MS);
    this.schedule();
  }

  detach() {
    this.model.onchange = () => {};
    clearInterval(this.ticking);
  }

  schedule() {
    this.frame ??= requestAnimationFrame(() => {
      this.frame = null;
      this.update();
    });
  }

  update() {
    const { history } = this.model;
    if (this.chosen && !history.versions.includes(this.chosen)) this.chosen = null;
    const version = this.chosen ?? history.latest;
    this.empty.hidden = version !== null;
    this.empty.textContent = this.model.emptyText;
    this.table.hidden = version === null;
    this.back.hidden = this.chosen === null;
    if (!version) return;
    this._showState(version);
    this._showVersions();
    this._say(history.latest);
  }

  _choose(version) {
    this.chosen = version;
    this.update();
    if (!version) this.versions.querySelector("button")?.focus();
  }

  _showState(version) {
    const { versions } = this.model.history;
    const until = versions.indexOf(version) + 1;
    const changed = lastChanges(versions.slice(0, until));
    const removed = version.changes.filter((one) => one.kind === "removed");
    const isLatest = version === this.model.history.latest;
    const number = version.seq === null ? "" : `, number ${version.seq}`;
    this.caption.textContent = `${isLatest ? "Latest state" : "Earlier state"}${number}, ${clock(version.at)} (${ago(version.at)})`;
    const isFresh = isLatest && this.shown !== version;
    this.shown = version;
    const rows = [...version.fields].map(([path, value]) =>
      fieldRow(path, value, changed.get(path), { version, isFresh }),
    );
    rows.push(...removed.map((one) => removedRow(one)));
    this.body.replaceChildren(...rows);
  }

  _showVersions() {
    const { versions, latest } = this.model.history;
    const shown = versions.slice(-SHOWN_VERSIONS).reverse();
    const focused = this.versions.contains(document.activeElement) ? document.activeElement.dataset.publication : null;
    this.versions.replaceChildren(
      ...shown.map((version) => this._version(version, version === (this.chosen ?? latest))),
    );
    if (focused) this.versions.querySelector(`[data-publication="${focused}"]`)?.focus();
  }

  _version(version, isShown) {
    const isLatest = version === this.model.history.latest;
    return el(
      "li",
      {},
      el(
        "button",
        {
          type: "button",
          "aria-current": isShown ? "true" : null,
          "data-publication": version.event.publication,
          onclick: () => this._choose(isLatest ? null : version),
        },
        el("time", {}, clock(version.at)),
        el("span", {}, summary(version)),
      ),
    );
  }

  _say(latest) {
    if (latest === this.told) return;
    const isFirst = this.told === null;
    this.told = latest;
    if (isFirst) return;
    const said = latest.changes
      .slice(0, SPOKEN)
      .map((one) => `${one.path}: ${one.kind === "removed" ? "removed" : text(one.after)}`);
    const more = latest.changes.length - said.length;
    this.spoken.textContent = said.join(", ") + (more > 0 ? `, and ${count(more, "more change")}` : "");
  }
}

/** Return the last change of each field, as far as the states go back. */
function lastChanges(versions) {
  const last = new Map();
  for (const version of versions) {
    for (const change of version.changes) last.set(change.path, { ...change, at: version.at, version });
  }
  return last;
}

function fieldRow(path, value, change, { version, isFresh }) {
  const isNew = change?.version === version;
  return el(
    "tr",
    { class: isNew ? `changed ${change.kind} ${isFresh ? "is-fresh" : ""}` : null },
    el("th", { scope: "row" }, breakable(path)),
    el(
      "td",
      {},
      isNew && change.kind === "changed" && el("del", {}, text(change.before)),
      " ",
      el(isNew ? "ins" : "span", { class: `value ${typeof value}` }, text(value)),
    ),
    el("td", { class: "when" }, change ? ago(change.at) : ""),
  );
}

function removedRow({ path, before }) {
  return el(
    "tr",
    { class: "changed removed" },
    el("th", { scope: "row" }, breakable(path)),
    el("td", {}, el("del", {}, text(before))),
    el("td", { class: "when" }, "removed"),
  );
}

function summary({ changes }) {
  if (!changes.length) return "first known state";
  const [first] = changes;
  const more = changes.length - 1;
  const told = first.kind === "removed" ? `${first.path} removed` : `${first.path} → ${text(first.after)}`;
  return more ? `${told}, ${more} more` : told;
}

/** Return a path that breaks behind its dots and underscores, where it has no room. */
function breakable(path) {
  return path.split(/(?<=[._])/).map((piece) => [piece, el("wbr")]);
}

function text(value) {
  return typeof value === "string" ? value : JSON.stringify(value);
}
