// The page: signing in, what is open, and which of it is in sight.

import { count, el } from "./dom.js";
import { LogView } from "./logview.js";
import { LogModel, parsedName, RecordModel } from "./models.js";
import { OverviewView } from "./overview.js";
import { RecordView } from "./recordview.js";
import { showSignIn } from "./signin.js";
import { Standing } from "./subscription.js";
import { TopicsView } from "./topics.js";
import { Client, Phase } from "./wamp.js";

const MODELS = { log: LogModel, record: RecordModel };
const VIEWS = { log: LogView, record: RecordView };
const FIRST_ATTEMPTS = 3; // a server that has just been woken may need more than one
const KEPT = "signalbox.open";

class App {
  constructor(root, config) {
    Object.assign(this, { root, config });
    this.open = new Map(); // the models of what is open, by address
    this.main = el("main", { id: "main", tabindex: "-1" });
    this.tabs = el("ul", { class: "tabs" });
    this.lamp = el(
      "button",
      { class: "lamp", type: "button", onclick: () => this.client.wake() },
      el("span", { class: "light", "aria-hidden": "true" }),
      el("span", { class: "words" }),
    );
    this.announced = el("p", { class: "visually-hidden", role: "status" });
    addEventListener("hashchange", () => this.client && this.show());
    for (const name of ["online", "offline", "focus"]) addEventListener(name, () => this.client?.wake());
    document.addEventListener("visibilitychange", () => document.visibilityState === "visible" && this.client?.wake());
  }

  signIn(problem = "") {
    document.title = "Sign in · Signalbox";
    showSignIn(this.root, this.config, problem, (identity) => this.join(identity));
  }

  /** Connect; sign-in stays in sight until the router has said yes, or why not. */
  join(identity) {
    return new Promise((resolve) => {
      const client = new Client({ url: socketUrl(this.config.websocket_url), ...identity }, (state) => {
        if (this.client === client) this.tell(state);
        else if (state.phase === Phase.LIVE) {
          this.client = client;
          this.begin(identity);
          resolve("");
        } else if (state.phase === Phase.REFUSED || client.attempts >= FIRST_ATTEMPTS) {
          client.watch = () => {};
          client.stop();
          resolve(state.reason || "the server does not answer");
        }
      });
      client.start();
    });
  }

  begin({ realm }) {
    this.identity = this.client.details;
    this.root.replaceChildren(
      el("a", { class: "skip", href: "#main", onclick: (event) => this._skip(event) }, "Skip to content"),
      el(
        "header",
        {},
        el(
          "a",
          { class: "brand", href: "#/topics" },
          el("span", { class: "mark", "aria-hidden": "true" }),
          "Signalbox",
        ),
        el("span", { class: "realm", title: "Realm" }, realm),
        this.lamp,
        el("span", { class: "who" }, this.identity.authid ?? ""),
        el("button", { type: "button", class: "quiet", onclick: () => this.leave() }, "Sign out"),
      ),
      el(
        "nav",
        { "aria-label": "Views" },
        el("ul", {}, this._link("topics", "Topics"), this._link("overview", "Overview")),
        this.tabs,
      ),
      this.main,
      this.announced,
    );
    for (const address of kept(realm)) this._model(address);
    if (!location.hash) history.replaceState(null, "", this.open.size ? `#/${[...this.open.keys()][0]}` : "#/topics");
    this.tell(this.client.state);
    this.show();
  }

  leave() {
    this.client.stop();
    location.hash = "";
    location.reload(); // nothing of the session stays in memory
  }

  /** Show what the address says: `#/topics`, `#/overview`, `#/log/<topic>`, `#/record/<topic>`. */
  show() {
    const [kind, ...rest] = location.hash.slice(2).split("/");
    const name = decoded(rest.join("/"));
    this.view?.detach();
    this.view = this._view(kind, name);
    this.main.replaceChildren(this.view.element);
    this.view.attach();
    this._markTabs();
    const title = this.view.model?.title ?? this.main.querySelector("h1")?.textContent ?? "";
    document.title = `${title} · Signalbox`;
    this.main.focus({ preventScroll: true });
  }

  _view(kind, name) {
    if (kind === "overview") return new OverviewView(this.client);
    if (!(kind in MODELS))
      return new TopicsView(this.client, (as, opened) => {
        location.hash = `#/${as}/${encodeURIComponent(opened)}`;
      });
    // A record is one topic: of several, only a log makes sense.
    const model = this._model(`${parsedName(name).match === "exact" ? kind : "log"}/${name}`);
    model.news = 0;
    return (model.view ??= new VIEWS[model.kind](model));
  }

  _model(address) {
    if (!this.open.has(address)) {
      const [kind, ...rest] = address.split("/");
      const model = new MODELS[kind](this.client, rest.join("/"));
      this.open.set(address, model);
      model.onnews = () => this._news(model);
      model.tab = this._tab(address, model);
      this.tabs.append(model.tab);
      keep(this.client.realm, this.open);
    }
    return this.open.get(address);
  }

  _tab(address, model) {
    const name = encodeURIComponent(model.name);
    model.badge = el("span", { class: "badge", hidden: true });
    return el(
      "li",
      {},
      el(
        "a",
        { href: `#/${model.kind}/${name}`, title: `${model.kind} ${model.title}`, "data-address": address },
        el("span", { class: `dot is-${model.kind}`, "aria-hidden": "true" }),
        el("span", { class: "name" }, el("bdi", {}, model.title)),
        model.badge,
      ),
      el(
        "button",
        { type: "button", class: "close", "aria-label": `Close ${model.title}`, onclick: () => this._close(address) },
        "×",
      ),
    );
  }

  _close(address) {
    const model = this.open.get(address);
    const wasShown = this.view?.model === model;
    this.open.delete(address);
    model.tab.remove();
    model.close();
    keep(this.client.realm, this.open);
    if (wasShown) location.hash = "#/topics";
  }

  /** Thousands of events may come in a second: what is told of them is written once a frame. */
  _news(model) {
    this.newsy ??= requestAnimationFrame(() => {
      this.newsy = null;
      for (const one of this.open.values()) this._count(one);
    });
    if (this.view?.model === model) model.news = 0;
  }

  _count(model) {
    if (this.view?.model === model) model.news = 0;
    model.badge.hidden = model.news === 0;
    model.badge.textContent = model.news > 99 ? "99+" : String(model.news);
    model.badge.setAttribute("aria-label", count(model.news, "new event"));
    model.tab.classList.toggle("ended", model.standing === Standing.ENDED);
  }

  _markTabs() {
    const here = decoded(location.hash.slice(2)) || "topics";
    for (const link of this.root.querySelectorAll("nav a")) {
      const isHere = link.dataset.address === here;
      if (isHere) {
        link.setAttribute("aria-current", "page");
        link.scrollIntoView({ block: "nearest", inline: "nearest" });
      } else link.removeAttribute("aria-current");
    }
    for (const model of this.open.values()) this._count(model);
  }

  _link(address, text) {
    return el("li", {}, el("a", { href: `#/${address}`, "data-address": address }, text));
  }

  _skip(event) {
    event.preventDefault(); // the address says what is in sight
    this.main.focus();
  }

  tell(state) {
    clearInterval(this.counting);
    this.lamp.dataset.phase = state.phase;
    this.lamp.disabled = state.phase !== Phase.WAITING;
    this._words(state);
    if (state.phase === Phase.WAITING) this.counting = setInterval(() => this._words(state), 1000);
    if (state.phase === Phase.REFUSED) this._refused(state);
    const said = SAID[state.phase];
    if (said && said !== this.announced.textContent && (this.client.joins > 1 || state.phase !== Phase.LIVE))
      this.announced.textContent = said;
  }

  _words({ phase, retryAt }) {
    const seconds = Math.max(0, Math.ceil((retryAt - Date.now()) / 1000));
    const words = {
      live: "Live",
      connecting: "Connecting …",
      waiting: seconds ? `Reconnecting in ${seconds} s` : "Reconnecting …",
      refused: "Ended",
      closed: "Signed out",
    };
    this.lamp.querySelector(".words").textContent = words[phase];
  }

  _refused({ reason }) {
    const dialog = el(
      "dialog",
      { class: "details", "aria-label": "The session ended" },
      el("h2", {}, "The session ended"),
      el("p", {}, `${reason}.`),
      el("p", {}, "What was shown stays here. To go on, sign in again."),
      el(
        "form",
        { method: "dialog", class: "actions" },
        el("button", {}, "Stay"),
        el("button", { type: "button", class: "primary", onclick: () => location.reload() }, "Sign in"),
      ),
    );
    document.body.append(dialog);
    dialog.showModal();
  }
}

const SAID = {
  live: "Connected again.",
  waiting: "The connection is lost. Reconnecting.",
  refused: "The session ended.",
};

/** Return what stands in an address, also where somebody typed a sign that should have been written otherwise. */
function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Return the address to connect to; a stage may name only the path on the page's own host. */
function socketUrl(url) {
  const resolved = new URL(url, location.href);
  resolved.protocol = resolved.protocol.replace("http", "ws");
  return resolved.href;
}

/** What was open in a realm is opened again: names of topics, in this tab only. */
function kept(realm) {
  try {
    return JSON.parse(sessionStorage.getItem(`${KEPT} ${realm}`) ?? "[]");
  } catch {
    return [];
  }
}

function keep(realm, open) {
  sessionStorage.setItem(`${KEPT} ${realm}`, JSON.stringify([...open.keys()]));
}

async function start() {
  const root = document.getElementById("page");
  try {
    const answer = await fetch("./config.json", { cache: "no-cache" });
    if (!answer.ok) throw new Error(`config.json: ${answer.status}`);
    new App(root, await answer.json()).signIn();
  } catch (error) {
    root.replaceChildren(
      el(
        "main",
        { class: "sign-in" },
        el("h1", {}, "Signalbox"),
        el("p", { role: "alert" }, `The page cannot start: ${error.message}. Load it again.`),
      ),
    );
  }
}

start();
