// What each capability of the stage does now: five numbers, each with the command that answers further.

import { el } from "./dom.js";
import { unavailable } from "./pictures.js";
import { WampError } from "./wamp.js";

/** @import { Client } from "./wamp.js" */

/** @typedef {"rate" | "backlog" | "oldest" | "errors" | "cost"} NumberName */

/**
 * A capability as `signalbox.activity` returns it. `minutes` is its work of each of the last 60 minutes.
 * @typedef {object} Activity
 * @property {string} capability
 * @property {string} unit
 * @property {number} rate
 * @property {number[]} minutes
 * @property {number} backlog
 * @property {number | null} oldest_seconds
 * @property {number} errors
 * @property {number} usd_least
 * @property {number} usd_most
 * @property {Record<NumberName, string>} questions
 */

const SVG = "http://www.w3.org/2000/svg";
const HEIGHT = 24;
const OLD_SECONDS = 60;
const SMALLEST_USD = 0.0001;
/** @type {Record<NumberName, string>} */
const LABELS = { rate: "", backlog: "waiting", oldest: "oldest", errors: "errors", cost: "USD" };
const NAMES = /** @type {NumberName[]} */ (Object.keys(LABELS));
// A user without the right, and a stage of a version without the procedure, have no such section.
const ABSENT = new Set(["wamp.error.not_authorized", "wamp.error.no_such_procedure"]);

/** The activity of the stage, for administrators; hidden for all others. */
export class ActivityView {
  /** @param {Client} client */
  constructor(client) {
    this.client = client;
    /** @type {Map<string, Row>} */
    this.rows = new Map();
    this.list = el("ul", { class: "activity" });
    this.note = el("p", { class: "small" });
    this.element = el(
      "section",
      { class: "now", hidden: true, "aria-labelledby": "now-title" },
      el("h2", { id: "now-title" }, "Now"),
      this.list,
      this.note,
    );
  }

  async refresh() {
    try {
      const { args } = await this.client.call("signalbox.activity");
      this._show(args[0].capabilities);
      this.note.textContent =
        "Rates of the last five minutes; errors and costs of the last hour, at list prices. A number shows a command.";
    } catch (error) {
      if (!this.client.isLive) return; // the numbers stay while the connection is lost
      this.element.hidden = error instanceof WampError && ABSENT.has(error.uri);
      this.note.textContent = unavailable(error);
    }
  }

  /** @param {Activity[]} found */
  _show(found) {
    for (const activity of found) {
      let row = this.rows.get(activity.capability);
      if (!row) {
        row = new Row(activity);
        this.rows.set(activity.capability, row);
        this.list.append(row.element);
      }
      row.update(activity);
    }
    this.element.hidden = false;
  }
}

/** A capability. Its elements stay, so that a refresh moves neither the focus nor a selection. */
class Row {
  /** @param {Activity} activity */
  constructor({ capability, unit }) {
    /** @type {NumberName | null} */
    this.asked = null;
    /** @type {Activity | null} */
    this.activity = null;
    this.bars = document.createElementNS(SVG, "path");
    this.picture = document.createElementNS(SVG, "svg");
    this.picture.setAttribute("role", "img");
    this.picture.setAttribute("preserveAspectRatio", "none");
    this.picture.append(this.bars);
    this.command = el("code");
    this.copy = el("button", { type: "button", onclick: () => this._copy() }, "Copy");
    this.answer = el("p", { class: "answer", hidden: true, role: "status" }, this.command, " ", this.copy);
    this.unit = unit;
    this.numbers = new Map(NAMES.map((name) => [name, this._number(name)]));
    const buttons = [...this.numbers.values()].map(({ button }) => button);
    this.element = el(
      "li",
      {},
      el("h3", {}, capability),
      this.picture,
      el("div", { class: "numbers", role: "group", "aria-label": capability }, buttons),
      this.answer,
    );
  }

  /** @param {NumberName} name */
  _number(name) {
    const value = el("strong");
    const label = name === "rate" ? `${this.unit}/s` : LABELS[name];
    const button = el(
      "button",
      { type: "button", "data-number": name, "aria-expanded": "false", onclick: () => this._ask(name) },
      value,
      " ",
      el("span", {}, label),
    );
    return { button, value };
  }

  /** @param {Activity} activity */
  update(activity) {
    this.activity = activity;
    for (const [name, text] of Object.entries(texts(activity))) {
      const number = this.numbers.get(/** @type {NumberName} */ (name));
      if (number) number.value.textContent = text;
    }
    this._mark("errors", activity.errors > 0);
    this._mark("oldest", (activity.oldest_seconds ?? 0) > OLD_SECONDS);
    const most = Math.max(1, ...activity.minutes);
    this.picture.setAttribute("viewBox", `0 0 ${activity.minutes.length} ${HEIGHT}`);
    this.picture.setAttribute("aria-label", `${activity.unit} of each minute of the last hour, at most ${most}`);
    this.bars.setAttribute("d", activity.minutes.map((number, at) => bar(at, number / most)).join(""));
    if (this.asked) this.command.textContent = activity.questions[this.asked];
  }

  /**
   * @param {NumberName} name
   * @param {boolean} isMarked
   */
  _mark(name, isMarked) {
    this.numbers.get(name)?.button.classList.toggle("marked", isMarked);
  }

  /** @param {NumberName} name */
  _ask(name) {
    this.asked = this.asked === name ? null : name;
    for (const [one, { button }] of this.numbers) button.setAttribute("aria-expanded", String(one === this.asked));
    this.answer.hidden = this.asked === null;
    this.copy.textContent = "Copy";
    if (this.asked && this.activity) this.command.textContent = this.activity.questions[this.asked];
  }

  async _copy() {
    try {
      await navigator.clipboard.writeText(this.command.textContent ?? "");
      this.copy.textContent = "Copied";
    } catch {
      this.copy.textContent = "Clipboard not available"; // browsers require TLS for it
    }
  }
}

/**
 * @param {Activity} activity
 * @returns {Record<NumberName, string>}
 */
function texts({ rate, backlog, oldest_seconds: oldest, errors, usd_least: least, usd_most: most }) {
  return {
    rate: rate >= 100 ? Math.round(rate).toLocaleString("en") : String(Number(rate.toPrecision(2))),
    backlog: backlog.toLocaleString("en"),
    oldest: oldest === null ? "–" : age(oldest),
    errors: errors.toLocaleString("en"),
    cost: usd(least, most),
  };
}

/** @param {number} seconds */
function age(seconds) {
  if (seconds < 120) return `${seconds} s`;
  return seconds < 7200 ? `${Math.floor(seconds / 60)} min` : `${Math.floor(seconds / 3600)} h`;
}

/**
 * @param {number} least
 * @param {number} most
 */
function usd(least, most) {
  if (most < SMALLEST_USD) return most ? `< ${SMALLEST_USD}` : "0";
  const [lower, upper] = [least.toFixed(4), most.toFixed(4)];
  return lower === upper ? upper : `${lower}–${upper}`;
}

/**
 * Return the path of a minute's bar; one with any work is visible.
 * @param {number} at
 * @param {number} share
 */
function bar(at, share) {
  const height = share ? Math.max(1.5, share * HEIGHT) : 0;
  return height ? `M${at} ${HEIGHT}v${-height.toFixed(2)}h.75v${height.toFixed(2)}z` : "";
}
