// The stage at a glance: connections, rendezvous, splits, exchanges, and the pictures of the reports.

import { ago, clock, count, el } from "./dom.js";
import { PicturesView } from "./pictures.js";

const EVERY_MS = 10_000;
const MOST_SESSIONS = 50;

export class OverviewView {
  constructor(client) {
    this.client = client;
    this.cards = Object.fromEntries(Object.entries(CARDS).map(([name, title]) => [name, card(name, title)]));
    this.pictures = new PicturesView(client);
    this.note = el("p", { class: "empty", role: "status" });
    this.element = el(
      "section",
      { class: "overview", "aria-labelledby": "overview-title" },
      el("h1", { id: "overview-title" }, "Overview"),
      this.note,
      el(
        "div",
        { class: "cards" },
        Object.values(this.cards).map((one) => one.element),
      ),
      this.pictures.element,
    );
  }

  attach() {
    this.refreshing = setInterval(() => document.visibilityState === "visible" && this.refresh(), EVERY_MS);
    this.refresh();
    this.pictures.refresh();
  }

  detach() {
    clearInterval(this.refreshing);
  }

  async refresh() {
    await Promise.all([this._stage(), this._sessions()]);
  }

  async _stage() {
    try {
      const {
        args: [told],
        kwargs,
      } = await this.client.call("signalbox.overview");
      this.note.textContent = "";
      this._fill("rendezvous", told.rendezvous && rendezvous(told.rendezvous), kwargs.unavailable);
      this._fill("splits", told.splits && splits(told.splits), kwargs.unavailable);
      this._fill("exchanges", told.exchanges && exchanges(told.exchanges), kwargs.unavailable);
    } catch (error) {
      this._refused(error, ["rendezvous", "splits", "exchanges"]);
    }
  }

  async _sessions() {
    try {
      const {
        args: [ids],
      } = await this.client.call("wamp.session.list");
      const shown = ids.slice(-MOST_SESSIONS);
      const found = await Promise.allSettled(shown.map((id) => this.client.call("wamp.session.get", [id])));
      const sessions = found.filter((one) => one.status === "fulfilled").map((one) => one.value.args[0]);
      this._fill("connections", connections(ids.length, sessions), {});
    } catch (error) {
      this._refused(error, ["connections"]);
    }
  }

  _fill(name, content, unavailable) {
    const { body } = this.cards[name];
    body.replaceChildren(
      content ?? el("p", { class: "empty" }, `Not to be had right now: ${unavailable?.[name] ?? "unknown"}.`),
    );
  }

  _refused(error, names) {
    if (!this.client.isLive) return; // what was there stays; the connection's state says the rest
    const isDenied = error.uri === "wamp.error.not_authorized";
    for (const name of names) {
      const text = isDenied
        ? "For administrators, and whom it is granted to."
        : `Not to be had right now: ${error.message}.`;
      this.cards[name].body.replaceChildren(el("p", { class: "empty" }, text));
    }
  }
}

const CARDS = {
  connections: "Connections",
  rendezvous: "Rendezvous today",
  splits: "Splits",
  exchanges: "Exchanges, last 5 minutes",
};

function card(name, title) {
  const body = el("div", { class: "body" }, el("p", { class: "empty" }, "…"));
  const element = el(
    "section",
    { class: `card ${name}`, "aria-labelledby": `card-${name}` },
    el("h2", { id: `card-${name}` }, title),
    body,
  );
  return { element, body };
}

function figure(number, label) {
  return el("div", { class: "figure" }, el("strong", {}, number.toLocaleString("en")), el("span", {}, label));
}

function sum(counts) {
  return Object.values(counts).reduce((total, one) => total + one, 0);
}

function connections(number, sessions) {
  const rows = sessions.map((one) => [one.authid ?? "", one.authrole ?? "", one.authmethod ?? ""]);
  return el(
    "div",
    {},
    el("div", { class: "figures" }, figure(number, number === 1 ? "session" : "sessions")),
    table(["User", "Role", "Joined by"], rows),
  );
}

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
  return el(
    "div",
    {},
    el(
      "div",
      { class: "figures" },
      figure(sum(proxies), "proxies"),
      figure(clients.matched, "clients matched"),
      figure(clients.denied, "denied"),
      figure(clients.timed_out, "timed out"),
    ),
    bars.length ? el("ul", { class: "bars" }, bars) : null,
    el(
      "p",
      { class: "small" },
      [nat && `NAT: ${nat}.`, `${count(idle, "idle poll")}. Clients and polls in multiples of eight.`]
        .filter(Boolean)
        .join(" "),
    ),
  );
}

function splits(found) {
  if (!found.length) return el("p", { class: "empty" }, "No queue is split.");
  return el(
    "div",
    {},
    found.map((split) =>
      el(
        "article",
        {},
        el(
          "h3",
          {},
          split.target,
          " ",
          el("span", { class: `stage ${split.stage ?? "unreadable"}` }, split.stage ?? "unreadable"),
        ),
        split.unreadable
          ? el("p", { class: "small" }, split.unreadable)
          : [
              el(
                "p",
                { class: "small" },
                `${split.queues.map((queue) => queue.original).join(", ")} · since ${clock(Date.parse(split.since))}`,
              ),
              table(
                ["Session", "Owner", "Phase", "Started"],
                split.sessions.map((one) => [one.session, one.owner, one.phase, ago(Date.parse(one.started_at))]),
              ),
            ],
      ),
    ),
  );
}

function exchanges(found) {
  if (!found.length) return el("p", { class: "empty" }, "No exchange is declared.");
  const rows = found.map((one) => [
    one.name,
    one.received,
    one.routed,
    one.dropped + one.rejected,
    one.last_at ? ago(Date.parse(one.last_at)) : "–",
  ]);
  return table(["Exchange", "In", "To queues", "Dropped", "Last message"], rows);
}

function table(names, rows) {
  if (!rows.length) return null;
  const cell = (value) =>
    el(
      "td",
      { class: typeof value === "number" ? "number" : null },
      typeof value === "number" ? value.toLocaleString("en") : value,
    );
  return el(
    "div",
    { class: "scrolls", tabindex: "0", role: "group", "aria-label": names[0] },
    el(
      "table",
      {},
      el(
        "thead",
        {},
        el(
          "tr",
          {},
          names.map((name, place) =>
            el("th", { scope: "col", class: typeof rows[0][place] === "number" ? "number" : null }, name),
          ),
        ),
      ),
      el(
        "tbody",
        {},
        rows.map(([first, ...others]) => el("tr", {}, el("th", { scope: "row" }, first), others.map(cell))),
      ),
    ),
  );
}
