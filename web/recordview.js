// The view of a record: its latest state, the fields that changed, and earlier states.

import { ago, clock, count, el } from "./dom.js";

/** @import { RecordModel } from "./models.js" */
/** @import { Change, Version } from "./record.js" */

/** A change and its version. @typedef {Change & { at: number, version: Version }} DatedChange */

const AGE_REFRESH_MS = 5_000;
const ANNOUNCED_CHANGES = 3;
const SHOWN_VERSIONS = 200;

/** The view of a record. */
export class RecordView {
  /** @param {RecordModel} model */
  constructor(model) {
    this.model = model;
    /** @type {Version | null} an earlier state that the user has chosen */
    this.chosen = null;
    /** @type {Version | null} the state that the table shows */
    this.shown = null;
    /** @type {Version | null} the state that was announced last */
    this.announced = null;
    /** @type {number | null} */
    this.frame = null;
    /** @type {number | undefined} */
    this.aging = undefined;
    this.body = el("tbody");
    this.caption = el("caption");
    this.versions = el("ol", { class: "versions", reversed: true });
    this.empty = el("p", { class: "empty" });
    this.announcement = el("p", { class: "visually-hidden", role: "status" });
    this.back = el(
      "button",
      { type: "button", class: "back", hidden: true, onclick: () => this._choose(null) },
      "Back to the latest state",
    );
    const columns = ["Field", "Value", "Changed"].map((name) => el("th", { scope: "col" }, name));
    this.table = el("table", { class: "fields" }, this.caption, el("thead", {}, el("tr", {}, columns)), this.body);
    this.element = el(
      "section",
      { class: "record-view", "aria-label": model.title },
      el("h1", { class: "visually-hidden" }, `Record ${model.title}`),
      this.announcement,
      el("div", { class: "shown" }, this.table, this.back, this.empty),
      el("aside", { "aria-label": "States" }, el("h2", {}, "States"), this.versions),
    );
  }

  attach() {
    this.announced = this.model.versions.latest;
    this.model.onchange = () => this.schedule();
    // A refresh would remove the user's text selection.
    this.aging = setInterval(() => getSelection()?.isCollapsed !== false && this.schedule(), AGE_REFRESH_MS);
    this.schedule();
  }

  detach() {
    this.model.onchange = () => {};
    clearInterval(this.aging);
  }

  /** Update at the next frame. */
  schedule() {
    this.frame ??= requestAnimationFrame(() => {
      this.frame = null;
      this.update();
    });
  }

  update() {
    const { versions } = this.model;
    if (this.chosen && !versions.all.includes(this.chosen)) this.chosen = null;
    const version = this.chosen ?? versions.latest;
    this.empty.hidden = version !== null;
    this.empty.textContent = this.model.emptyText;
    this.table.hidden = version === null;
    this.back.hidden = this.chosen === null;
    if (!version || !versions.latest) return;
    this._showState(version);
    this._showVersions();
    this._announce(versions.latest);
  }

  /** @param {Version | null} version */
  _choose(version) {
    this.chosen = version;
    this.update();
    if (!version) this.versions.querySelector("button")?.focus();
  }

  /** @param {Version} version */
  _showState(version) {
    const { all, latest } = this.model.versions;
    const changed = lastChanges(all.slice(0, all.indexOf(version) + 1));
    const removed = version.changes.filter((one) => one.kind === "removed");
    const isLatest = version === latest;
    const number = version.seq === null ? "" : `, number ${version.seq}`;
    const title = isLatest ? "Latest state" : "Earlier state";
    this.caption.textContent = `${title}${number}, ${clock(version.at)} (${ago(version.at)})`;
    const isFresh = isLatest && this.shown !== version;
    this.shown = version;
    const rows = [...version.fields].map(([path, value]) =>
      fieldRow(path, value, changed.get(path), { version, isFresh }),
    );
    rows.push(...removed.map((one) => removedRow(one)));
    this.body.replaceChildren(...rows);
  }

  _showVersions() {
    const { all, latest } = this.model.versions;
    const shown = all.slice(-SHOWN_VERSIONS).reverse();
    const focused = this.versions.contains(document.activeElement) ? document.activeElement : null;
    const publication = focused instanceof HTMLElement ? focused.dataset.publication : null;
    this.versions.replaceChildren(
      ...shown.map((version) => this._version(version, version === (this.chosen ?? latest))),
    );
    const button = publication && this.versions.querySelector(`[data-publication="${publication}"]`);
    if (button instanceof HTMLElement) button.focus();
  }

  /**
   * @param {Version} version
   * @param {boolean} isShown
   */
  _version(version, isShown) {
    const isLatest = version === this.model.versions.latest;
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

  /**
   * Announce the changes of a new state to screen readers.
   * @param {Version} latest
   */
  _announce(latest) {
    if (latest === this.announced) return;
    const isFirst = this.announced === null;
    this.announced = latest;
    if (isFirst) return;
    const changes = latest.changes.slice(0, ANNOUNCED_CHANGES);
    const texts = changes.map((one) => `${one.path}: ${one.kind === "removed" ? "removed" : valueText(one.after)}`);
    const more = latest.changes.length - texts.length;
    this.announcement.textContent = texts.join(", ") + (more > 0 ? `, and ${count(more, "more change")}` : "");
  }
}

/**
 * Return the last change of each field in a list of versions.
 * @param {Version[]} versions
 */
function lastChanges(versions) {
  /** @type {Map<string, DatedChange>} */
  const last = new Map();
  for (const version of versions) {
    for (const change of version.changes) last.set(change.path, { ...change, at: version.at, version });
  }
  return last;
}

/**
 * @param {string} path
 * @param {unknown} value
 * @param {DatedChange | undefined} change
 * @param {{ version: Version, isFresh: boolean }} state
 */
function fieldRow(path, value, change, { version, isFresh }) {
  const current = change?.version === version ? change : null;
  return el(
    "tr",
    { class: current ? `changed ${current.kind} ${isFresh ? "is-fresh" : ""}` : null },
    el("th", { scope: "row" }, breakable(path)),
    el(
      "td",
      {},
      current?.kind === "changed" && el("del", {}, valueText(current.before)),
      " ",
      el(current ? "ins" : "span", { class: `value ${typeof value}` }, valueText(value)),
    ),
    el("td", { class: "when" }, change ? ago(change.at) : ""),
  );
}

/** @param {Change} change */
function removedRow({ path, before }) {
  return el(
    "tr",
    { class: "changed removed" },
    el("th", { scope: "row" }, breakable(path)),
    el("td", {}, el("del", {}, valueText(before))),
    el("td", { class: "when" }, "removed"),
  );
}

/**
 * Return the text of a version in the list of states.
 * @param {Version} version
 */
function summary({ changes }) {
  const [first] = changes;
  if (!first) return "first known state";
  const more = changes.length - 1;
  const text = first.kind === "removed" ? `${first.path} removed` : `${first.path} → ${valueText(first.after)}`;
  return more ? `${text}, ${more} more` : text;
}

/**
 * Return a path that may break after its dots and underscores.
 * @param {string} path
 */
function breakable(path) {
  return path.split(/(?<=[._])/).map((piece) => [piece, el("wbr")]);
}

/** @param {unknown} value */
function valueText(value) {
  return typeof value === "string" ? value : JSON.stringify(value);
}
