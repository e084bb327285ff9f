// The overview of the stage: its activity, connections, rendezvous, splits, exchanges, and the pictures of the reports.

import { ActivityView } from "./activity.js";
import { ago, clock, count, el } from "./dom.js";
import { PicturesView, unavailable } from "./pictures.js";

/** @import { Child } from "./dom.js" */
/** @import { Client } from "./wamp.js" */

/** @typedef {Record<string, number>} Counts */

/**
 * The rendezvous of a day: proxies by type and by NAT, and clients by outcome.
 * @typedef {{ proxies: Counts, nats: Counts, clients: Counts, idle_polls: number }} Rendezvous
 */

/** @typedef {{ session: string, owner: string, phase: string, started_at: string }} SplitSession */

/**
 * A split target. With `unreadable`, a reason, the properties from `stage` on are missing.
 * @typedef {object} Split
 * @property {string} target
 * @property {string} [unreadable]
 * @property {string} [stage]
 * @property {string} [since]
 * @property {{ original: string }[]} [queues]
 * @property {SplitSession[]} [sessions]
 */

/**
 * An exchange and its messages of the last five minutes.
 * @typedef {object} Exchange
 * @property {string} name
 * @property {number} received
 * @property {number} routed
 * @property {number} dropped
 * @property {number} rejected
 * @property {string | null} last_at
 */

/** @typedef {{ authid?: string, authrole?: string, authmethod?: string }} Session */

const REFRESH_MS = 10_000;
const MAXIMUM_SESSIONS = 50;
const AT_MOST = "≤ "; // counts of clients are rounded up
const CARDS = {
  connections: "Connections",
  rendezvous: "Rendezvous today",
  splits: "Splits",
  exchanges: "Exchanges, last 5 minutes",
};

/** @typedef {keyof typeof CARDS} CardName */

/** The view of the overview. */
export class OverviewView {
  /** @param {Client} client */
  constructor(client) {
    this.client = client;
    this.cards = {
      connections: card("connections"),
      rendezvous: card("rendezvous"),
      splits: card("splits"),
      exchanges: card("exchanges"),
    };
    this.activity = new ActivityView(client);
    this.pictures = new PicturesView(client);
    /** @type {number | undefined} */
    this.refreshing = undefined;
    this._refreshIfSeen = () => document.visibilityState === "visible" && this.refresh();
    this.element = el(
      "section",
      { class: "overview", "aria-labelledby": "overview-title" },
      el("h1", { id: "overview-title" }, "Overview"),
      this.activity.element,
      el(
        "div",
        { class: "cards" },
        Object.values(this.cards).map((one) => one.element),
      ),
      this.pictures.element,
    );
  }

  attach() {
    this.refreshing = setInterval(this._refreshIfSeen, REFRESH_MS);
    document.addEventListener("visibilitychange", this._refreshIfSeen);
    this.refresh();
    this.pictures.refresh();
  }

  detach() {
    clearInterval(this.refreshing);
    document.removeEventListener("visibilitychange", this._refreshIfSeen);
  }

  /** Load the cards; the pictures are loaded once, when the view is shown. */
  async refresh() {
    await Promise.all([this.activity.refresh(), this._loadStage(), this._loadSessions()]);
  }

  async _loadStage() {
    try {
      const { args, kwargs } = await this.client.call("signalbox.overview");
      const [stage] = args;
      for (const name of /** @type {CardName[]} */ (["rendezvous", "splits"])) {
        this.cards[name].element.hidden = kwargs.parts?.includes(name) === false;
      }
      /** @param {CardName} name */
      const missing = (name) => {
        const reason = kwargs.unavailable?.[name];
        return note(reason ? `Not available: ${reason}.` : "You have no permission to view this.");
      };
      this._fill("rendezvous", stage.rendezvous ? rendezvous(stage.rendezvous) : missing("rendezvous"));
      this._fill("splits", stage.splits ? splits(stage.splits) : missing("splits"));
      this._fill("exchanges", stage.exchanges ? exchanges(stage.exchanges) : missing("exchanges"));
    } catch (error) {
      this._failed(error, ["rendezvous", "splits", "exchanges"]);
    }
  }

  async _loadSessions() {
    try {
      const { args } = await this.client.call("wamp.session.list");
      /** @type {number[]} */
      const ids = args[0];
      const shown = ids.slice(-MAXIMUM_SESSIONS);
      const found = await Promise.allSettled(shown.map((id) => this.client.call("wamp.session.get", [id])));
      const sessions = found.flatMap((one) => (one.status === "fulfilled" ? [one.value.args[0]] : []));
      this._fill("connections", connections(ids.length, sessions));
    } catch (error) {
      this._failed(error, ["connections"]);
    }
  }

  /**
   * @param {CardName} name
   * @param {Node | null} content
   */
  _fill(name, content) {
    this.cards[name].body.replaceChildren(...(content ? [content] : []));
  }

  /**
   * @param {unknown} error
   * @param {CardName[]} names
   */
  _failed(error, names) {
    if (!this.client.isLive) return; // the cards keep their content while the connection is lost
    for (const name of names) this._fill(name, note(unavailable(error)));
  }
}

/** @param {CardName} name */
function card(name) {
  const body = el("div", { class: "body" }, note("…"));
  const title = el("h2", { id: `card-${name}` }, CARDS[name]);
  return { element: el("section", { class: `card ${name}`, "aria-labelledby": `card-${name}` }, title, body), body };
}

/** @param {string} text */
function note(text) {
  return el("p", { class: "empty" }, text);
}

/**
 * @param {number} number
 * @param {string} label
 * @param {string} [bound] before a number that is not 0
 */
function figure(number, label, bound = "") {
  const text = number ? bound + number.toLocaleString("en") : "0";
  return el("div", { class: "figure" }, el("strong", {}, text), el("span", {}, label));
}

/** @param {Counts} counts */
function sum(counts) {
  return Object.values(counts).reduce((total, one) => total + one, 0);
}

/**
 * @param {number} number
 * @param {Session[]} sessions
 */
function connections(number, sessions) {
  const rows = sessions.map((one) => [one.authid ?? "", one.authrole ?? "", one.authmethod ?? ""]);
  return el(
    "div",
    {},
    el("div", { class: "figures" }, figure(number, number === 1 ? "session" : "sessions")),
    table(["User", "Role", "Authentication"], rows),
  );
}

/** @param {Rendezvous} day */
function rendezvous({ proxies, nats, clients, idle_polls: idle }) {
  const most = Math.max(1, ...Object.values(proxies));
  const bars = Object.entries(proxies)
    .filter(([, number]) => number)
    .map(([type, number]) =>
      el(
        "li",
        {},
        el("span", {}, type),
        el("meter", { min: 0, max: most, value: number, "aria-label": type }),
        el("span", { class: "number" }, String(number)),
      ),
    );
  const nat = Object.entries(nats)
    .filter(([, number]) => number)
    .map(([name, number]) => `${number} ${name}`)
    .join(", ");
  const notes = [
    nat && `NAT: ${nat}.`,
    `${count(idle, "idle poll")}. Clients and polls are rounded up to multiples of eight.`,
  ];
  return el(
    "div",
    {},
    el(
      "div",
      { class: "figures" },
      figure(sum(proxies), "proxies"),
      figure(clients.matched, "clients matched", AT_MOST),
      figure(clients.denied, "denied", AT_MOST),
      figure(clients.timed_out, "timed out", AT_MOST),
    ),
    bars.length ? el("ul", { class: "bars" }, bars) : null,
    el("p", { class: "small" }, notes.filter(Boolean).join(" ")),
  );
}

/** @param {Split[]} found */
function splits(found) {
  if (!found.length) return note("No queue is split.");
  return el(
    "div",
    {},
    found.map((split) => el("article", {}, splitTitle(split), splitContent(split))),
  );
}

/** @param {Split} split */
function splitTitle({ target, stage = "unreadable" }) {
  return el("h3", {}, target, " ", el("span", { class: `stage ${stage}` }, stage));
}

/**
 * @param {Split} split
 * @returns {Child}
 */
function splitContent({ unreadable, queues = [], since = "", sessions = [] }) {
  if (unreadable) return el("p", { class: "small" }, unreadable);
  const names = queues.map((queue) => queue.original).join(", ");
  const rows = sessions.map((one) => [one.session, one.owner, one.phase, ago(Date.parse(one.started_at))]);
  return [
    el("p", { class: "small" }, `${names} · since ${clock(Date.parse(since))}`),
    table(["Session", "Owner", "Phase", "Started"], rows),
  ];
}

/** @param {Exchange[]} found */
function exchanges(found) {
  if (!found.length) return note("No exchange is declared.");
  const rows = found.map((one) => [
    one.name,
    one.received,
    one.routed,
    one.dropped + one.rejected,
    one.last_at ? ago(Date.parse(one.last_at)) : "–",
  ]);
  return table(["Exchange", "In", "To queues", "Dropped", "Last message"], rows);
}

/**
 * Return a table, or null without rows. A row's first value is its heading.
 * @param {string[]} names
 * @param {(string | number)[][]} rows
 */
function table(names, rows) {
  if (!rows.length) return null;
  const columns = names.map((name, index) =>
    el("th", { scope: "col", class: typeof rows[0][index] === "number" ? "number" : null }, name),
  );
  return el(
    "div",
    { class: "scrolls", tabindex: "0", role: "group", "aria-label": names[0] },
    el("table", {}, el("thead", {}, el("tr", {}, columns)), el("tbody", {}, rows.map(tableRow))),
  );
}

/** @param {(string | number)[]} row */
function tableRow([first, ...others]) {
  const cells = others.map((value) =>
    typeof value === "number" ? el("td", { class: "number" }, value.toLocaleString("en")) : el("td", {}, value),
  );
  return el("tr", {}, el("th", { scope: "row" }, String(first)), cells);
}
