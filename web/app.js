// The page: sign-in, the open tabs, the view that the address selects, and the state of the connection.

import { count, el, find, messageOf } from "./dom.js";
import { beginSignIn, finishSignIn, takeAnswer, takePending } from "./identity.js";
import { LogView } from "./logview.js";
import { LogModel, parseName, RecordModel } from "./models.js";
import { OverviewView } from "./overview.js";
import { RecordView } from "./recordview.js";
import { Renewals } from "./renewals.js";
import { fetchConfig, lastRealm, rememberRealm, showSignIn } from "./signin.js";
import { Status } from "./subscription.js";
import { TopicsView } from "./topics.js";
import { Client, Phase } from "./wamp.js";

/** @import { SignedIn } from "./identity.js" */
/** @import { Kind } from "./models.js" */
/** @import { Config, Identity } from "./signin.js" */
/** @import { ConnectionState } from "./wamp.js" */

/**
 * An open log or record.
 * @typedef {object} Tab
 * @property {LogModel | RecordModel} model
 * @property {LogView | RecordView} view
 * @property {HTMLElement} item its entry in the navigation
 * @property {HTMLElement} badge the count of its unread events
 */

/** @typedef {LogView | RecordView | TopicsView | OverviewView} View */

const FIRST_ATTEMPTS = 3; // a function that has not run for a while may take more than one
const TABS_KEY = "signalbox.open";
const CONNECTION_TEXTS = {
  live: "Live",
  connecting: "Connecting …",
  waiting: "Reconnecting …",
  refused: "Ended",
  closed: "Signed out",
};
/** What screen readers announce. @type {Record<string, string | undefined>} */
const ANNOUNCEMENTS = {
  live: "Connected again.",
  waiting: "The connection is lost. Reconnecting.",
  refused: "The session ended.",
};

/** The page of a user who has joined a realm. */
class App {
  /**
   * @param {HTMLElement} root
   * @param {Client} client
   * @param {SignedIn | null} signedIn the user of an identity provider
   */
  constructor(root, client, signedIn) {
    this.root = root;
    this.client = client;
    this.signedIn = signedIn;
    this.renewals = signedIn && new Renewals(client, signedIn);
    /** @type {Map<string, Tab>} by address */
    this.open = new Map();
    /** @type {View | null} */
    this.view = null;
    /** @type {number | null} */
    this.badgeFrame = null;
    /** @type {number | undefined} */
    this.countdown = undefined;
    this.main = el("main", { id: "main", tabindex: "-1" });
    this.tabs = el("ul", { class: "tabs" });
    this.connectionText = el("span", { class: "words" });
    this.connection = el(
      "button",
      { class: "connection", type: "button", onclick: () => client.wake() },
      el("span", { class: "light", "aria-hidden": "true" }),
      this.connectionText,
    );
    this.announcement = el("p", { class: "visually-hidden", role: "status" });
    root.replaceChildren(
      el("a", { class: "skip", href: "#main", onclick: (event) => this._skip(event) }, "Skip to content"),
      this._header(),
      ...(this.renewals ? [this.renewals.notice] : []),
      el(
        "nav",
        { "aria-label": "Views" },
        el("ul", {}, navigationLink("topics", "Topics"), navigationLink("overview", "Overview")),
        this.tabs,
      ),
      this.main,
      this.announcement,
    );
    for (const address of storedTabs(client.realm)) this._tab(address);
    if (!location.hash) history.replaceState(null, "", this.open.size ? `#/${[...this.open.keys()][0]}` : "#/topics");
    addEventListener("hashchange", () => this.show());
    for (const name of ["online", "offline", "focus"]) addEventListener(name, () => client.wake());
    document.addEventListener("visibilitychange", () => document.visibilityState === "visible" && client.wake());
    this.showConnection(client.state);
    this.show();
  }

  /** Show the view of the address: `#/topics`, `#/overview`, `#/log/<topic>`, `#/record/<topic>`. */
  show() {
    const [kind, ...rest] = location.hash.slice(2).split("/");
    this.view?.detach();
    this.view = this._viewOf(kind, decoded(rest.join("/")));
    this.main.replaceChildren(this.view.element);
    this.view.attach();
    this._markCurrent();
    const title = "model" in this.view ? this.view.model.title : find(this.main, "h1").textContent;
    document.title = `${title} · Signalbox`;
    this.main.focus({ preventScroll: true });
  }

  /**
   * Show the state of the connection, and announce its changes.
   * @param {ConnectionState} state
   */
  showConnection(state) {
    clearInterval(this.countdown);
    this.connection.dataset.phase = state.phase;
    this.connection.disabled = state.phase !== Phase.WAITING;
    this._showConnectionText(state);
    if (state.phase === Phase.WAITING) {
      this.countdown = setInterval(() => this._showConnectionText(state), 1000);
    }
    if (state.phase === Phase.REFUSED) {
      this.renewals?.stop();
      showEnd(state.reason, () => this._signInAgain());
    }
    const text = ANNOUNCEMENTS[state.phase];
    const isFirst = state.phase === Phase.LIVE && this.client.joins <= 1;
    if (text && text !== this.announcement.textContent && !isFirst) this.announcement.textContent = text;
  }

  /** @param {ConnectionState} state */
  _showConnectionText({ phase, retryAt }) {
    const seconds = Math.max(0, Math.ceil((retryAt - Date.now()) / 1000));
    const isCounting = phase === Phase.WAITING && seconds > 0;
    this.connectionText.textContent = isCounting ? `Reconnecting in ${seconds} s` : CONNECTION_TEXTS[phase];
  }

  _header() {
    const mark = el("span", { class: "mark", "aria-hidden": "true" });
    return el(
      "header",
      {},
      el("a", { class: "brand", href: "#/topics" }, mark, "Signalbox"),
      el("span", { class: "realm", title: "Realm" }, this.client.realm),
      this.connection,
      el("span", { class: "who" }, this.client.details.authid ?? ""),
      el("button", { type: "button", class: "quiet", onclick: () => this._signOut() }, "Sign out"),
    );
  }

  async _signOut() {
    this.renewals?.stop();
    this.client.stop();
    location.hash = "";
    if (this.signedIn) await this.signedIn.end();
    else location.reload(); // removes the session from memory
  }

  async _signInAgain() {
    // If the provider does not answer, the form says so after its button is pressed.
    if (this.signedIn) await beginSignIn(this.signedIn.issuer, location.hash).catch(() => location.reload());
    else location.reload();
  }

  /**
   * @param {string} kind
   * @param {string} name
   * @returns {View}
   */
  _viewOf(kind, name) {
    if (kind === "overview") return new OverviewView(this.client);
    if (kind !== "log" && kind !== "record") {
      return new TopicsView(this.client, (as, opened) => {
        location.hash = `#/${as}/${encodeURIComponent(opened)}`;
      });
    }
    // A record is a single topic: a pattern opens as a log.
    const tab = this._tab(`${parseName(name).match === "exact" ? kind : "log"}/${name}`);
    tab.model.unread = 0;
    return tab.view;
  }

  /**
   * Return the tab of an address, opening it if necessary.
   * @param {string} address
   */
  _tab(address) {
    const opened = this.open.get(address);
    if (opened) return opened;
    const [kind, ...rest] = address.split("/");
    const tab = this._newTab(address, kind === "record" ? "record" : "log", rest.join("/"));
    this.open.set(address, tab);
    this.tabs.append(tab.item);
    storeTabs(this.client.realm, this.open);
    return tab;
  }

  /**
   * @param {string} address
   * @param {Kind} kind
   * @param {string} name
   * @returns {Tab}
   */
  _newTab(address, kind, name) {
    const content = newContent(this.client, kind, name);
    const { model } = content;
    model.onunread = () => this._scheduleBadges(model);
    const badge = el("span", { class: "badge", hidden: true });
    const href = `#/${kind}/${encodeURIComponent(name)}`;
    const link = el(
      "a",
      { href, title: `${kind} ${model.title}`, "data-address": address },
      el("span", { class: `dot is-${kind}`, "aria-hidden": "true" }),
      el("span", { class: "name" }, el("bdi", {}, model.title)),
      badge,
    );
    const close = el(
      "button",
      { type: "button", class: "close", "aria-label": `Close ${model.title}`, onclick: () => this._close(address) },
      "×",
    );
    return { ...content, item: el("li", {}, link, close), badge };
  }

  /** @param {string} address */
  _close(address) {
    const tab = this.open.get(address);
    if (!tab) return;
    this.open.delete(address);
    tab.item.remove();
    tab.model.close();
    storeTabs(this.client.realm, this.open);
    if (this.view === tab.view) location.hash = "#/topics";
  }

  /**
   * Update the badges at the next frame: thousands of events may come in a second.
   * @param {LogModel | RecordModel} model
   */
  _scheduleBadges(model) {
    this.badgeFrame ??= requestAnimationFrame(() => {
      this.badgeFrame = null;
      for (const tab of this.open.values()) this._updateBadge(tab);
    });
    if (this._isShown(model)) model.unread = 0;
  }

  /** @param {Tab} tab */
  _updateBadge({ model, item, badge }) {
    if (this._isShown(model)) model.unread = 0;
    badge.hidden = model.unread === 0;
    badge.textContent = model.unread > 99 ? "99+" : String(model.unread);
    badge.setAttribute("aria-label", count(model.unread, "new event"));
    item.classList.toggle("ended", model.status === Status.ENDED);
  }

  /** @param {LogModel | RecordModel} model */
  _isShown(model) {
    return this.view !== null && "model" in this.view && this.view.model === model;
  }

  _markCurrent() {
    const current = decoded(location.hash.slice(2)) || "topics";
    for (const link of this.root.querySelectorAll("nav a")) {
      if (link instanceof HTMLElement && link.dataset.address === current) {
        link.setAttribute("aria-current", "page");
        link.scrollIntoView({ block: "nearest", inline: "nearest" });
      } else link.removeAttribute("aria-current");
    }
    for (const tab of this.open.values()) this._updateBadge(tab);
  }

  /** @param {Event} event */
  _skip(event) {
    event.preventDefault(); // the address selects the view, and is not to change
    this.main.focus();
  }
}

/**
 * @param {Client} client
 * @param {Kind} kind
 * @param {string} name
 */
function newContent(client, kind, name) {
  if (kind === "record") {
    const model = new RecordModel(client, name);
    return { model, view: new RecordView(model) };
  }
  const model = new LogModel(client, name);
  return { model, view: new LogView(model) };
}

/**
 * @param {string} address
 * @param {string} text
 */
function navigationLink(address, text) {
  return el("li", {}, el("a", { href: `#/${address}`, "data-address": address }, text));
}

/**
 * Show why the router has ended the session.
 * @param {string} reason
 * @param {() => void} signIn
 */
function showEnd(reason, signIn) {
  const dialog = el(
    "dialog",
    { class: "details", "aria-label": "The session ended" },
    el("h2", {}, "The session ended"),
    el("p", {}, `${reason}.`),
    el("p", {}, "The content of this page remains. Sign in again to receive new events."),
    el(
      "form",
      { method: "dialog", class: "actions" },
      el("button", {}, "Stay"),
      el("button", { type: "button", class: "primary", onclick: signIn }, "Sign in"),
    ),
  );
  document.body.append(dialog);
  dialog.showModal();
}

/**
 * Decode a part of the address. An invalid escape sequence, as a user may type it, is returned as it is.
 * @param {string} text
 */
function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/**
 * Return the address of the WebSocket. The configuration may give only a path on the page's own host.
 * @param {string} url
 */
function socketUrl(url) {
  const resolved = new URL(url, location.href);
  resolved.protocol = resolved.protocol.replace("http", "ws");
  return resolved.href;
}

/**
 * Return the addresses that were open in a realm. The browser keeps them for this tab only.
 * @param {string} realm
 * @returns {string[]}
 */
function storedTabs(realm) {
  try {
    return JSON.parse(sessionStorage.getItem(`${TABS_KEY} ${realm}`) ?? "[]");
  } catch {
    return [];
  }
}

/**
 * @param {string} realm
 * @param {Map<string, Tab>} open
 */
function storeTabs(realm, open) {
  sessionStorage.setItem(`${TABS_KEY} ${realm}`, JSON.stringify([...open.keys()]));
}

/**
 * Connect, and show the page once the router has welcomed the client. Returns the reason of a failure, or an empty
 * string.
 * @param {HTMLElement} root
 * @param {Config} config
 * @param {Identity} identity
 * @param {SignedIn | null} [signedIn]
 * @returns {Promise<string>}
 */
function join(root, config, identity, signedIn = null) {
  return new Promise((resolve) => {
    /** @type {App | null} */
    let app = null;
    const client = new Client({ url: socketUrl(config.websocket_url), ...identity }, (state) => {
      if (app) app.showConnection(state);
      else if (state.phase === Phase.LIVE) {
        app = new App(root, client, signedIn);
        resolve("");
      } else if (state.phase === Phase.REFUSED || client.attempts >= FIRST_ATTEMPTS) {
        client.onState = () => {};
        client.stop();
        resolve(state.reason || "the server does not answer");
      }
    });
    client.start();
  });
}

/**
 * Join as the user of an identity provider whose answer is in the address. Returns the reason of a failure, or an empty
 * string.
 * @param {HTMLElement} root
 * @param {Config} config
 * @param {URLSearchParams} answer
 * @param {ReturnType<typeof takePending>} pending
 */
async function joinWithProvider(root, config, answer, pending) {
  try {
    const signedIn = await finishSignIn(answer, pending, config.issuers ?? []);
    const { realm } = signedIn.issuer;
    rememberRealm(realm);
    return await join(root, config, { realm, token: () => signedIn.token() }, signedIn);
  } catch (error) {
    return messageOf(error);
  }
}

async function start() {
  const root = find(document, "#page");
  const pending = takePending();
  const answer = takeAnswer(pending?.address ?? "");
  try {
    const config = await fetchConfig(pending?.issuer.realm ?? lastRealm());
    document.title = "Sign in · Signalbox";
    const problem = answer && (await joinWithProvider(root, config, answer, pending));
    if (problem !== "") showSignIn(root, config, (identity) => join(root, config, identity), problem ?? "");
  } catch (error) {
    const text = `Cannot start: ${messageOf(error)}. Reload the page.`;
    root.replaceChildren(el("main", { class: "sign-in" }, el("h1", {}, "Signalbox"), el("p", { role: "alert" }, text)));
  }
}

start();
