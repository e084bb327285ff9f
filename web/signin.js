// The sign-in form. The page keeps the ticket in memory only; a browser's password manager may store it.

import { el, messageOf } from "./dom.js";
import { beginSignIn, issuerName } from "./identity.js";

/** @import { Issuer } from "./identity.js" */
/** @import { TokenSource } from "./wamp.js" */

/** @typedef {{ websocket_url: string, realms?: string[], issuers?: Issuer[] }} Config */
/** @typedef {{ realm: string, authid?: string, ticket?: string, token?: TokenSource }} Identity */

const REALM_KEY = "signalbox.realm";

/**
 * Fetch the configuration, with the issuers of all realms or, on a stage that does not list its realms, of one.
 * @param {string} realm
 * @returns {Promise<Config>}
 */
export async function fetchConfig(realm) {
  const answer = await fetch(`./config.json${realm ? `?${new URLSearchParams({ realm })}` : ""}`, {
    cache: "no-cache",
  });
  if (!answer.ok) throw new Error(`config.json: ${answer.status}`);
  return answer.json();
}

/** Return the realm that this browser joined last. */
export function lastRealm() {
  return localStorage.getItem(REALM_KEY) ?? "";
}

/** @param {string} realm */
export function rememberRealm(realm) {
  localStorage.setItem(REALM_KEY, realm);
}

/**
 * Show the form in place of the page.
 * @param {HTMLElement} root
 * @param {Config} config
 * @param {(identity: Identity) => Promise<string>} join joins the realm, and returns the reason of a failure or an
 *   empty string
 * @param {string} [problem] why a sign-in with an identity provider failed
 */
export function showSignIn(root, config, join, problem = "") {
  const realms = config.realms ?? [];
  const realm = el("input", {
    id: "realm",
    name: "realm",
    required: true,
    list: "realms",
    autocomplete: "off",
    autocapitalize: "none",
    spellcheck: "false",
    value: lastRealm() || (realms.length === 1 ? realms[0] : ""),
    onchange: () => offer(),
  });
  const authid = el("input", {
    id: "authid",
    name: "username",
    autocomplete: "username",
    autocapitalize: "none",
    spellcheck: "false",
  });
  const ticket = el("input", { id: "ticket", name: "password", type: "password", autocomplete: "current-password" });
  const error = el("p", { class: "problem", role: "alert" }, problem && sentence(problem));
  const providers = el("div", { class: "providers", hidden: true });
  const button = el("button", { class: "primary" }, "Sign in");
  const form = el(
    "form",
    {},
    el("label", { for: "realm" }, "Realm"),
    realm,
    el(
      "datalist",
      { id: "realms" },
      realms.map((name) => el("option", { value: name })),
    ),
    providers,
    el("label", { for: "authid" }, "Name"),
    authid,
    el("label", { for: "ticket" }, "Ticket"),
    ticket,
    error,
    button,
    el("p", { class: "small" }, "Leave the name empty to join as anonymous, if the realm allows it."),
  );
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    button.disabled = true;
    error.textContent = "";
    const reason = await join({ realm: realm.value.trim(), authid: authid.value.trim(), ticket: ticket.value });
    button.disabled = false;
    if (!reason) {
      rememberRealm(realm.value.trim());
      return;
    }
    error.textContent = sentence(reason);
    ticket.select();
  });
  /** Show a button for each identity provider of the realm. */
  async function offer() {
    const name = realm.value.trim();
    const known = realms.length ? config : await fetchConfig(name).catch(() => config);
    if (realm.value.trim() !== name) return;
    const issuers = (known.issuers ?? []).filter((issuer) => issuer.realm === name);
    providers.hidden = issuers.length === 0;
    providers.replaceChildren(
      ...issuers.map((issuer) =>
        el(
          "button",
          { type: "button", class: "primary", onclick: (event) => begin(event.currentTarget, issuer) },
          `Sign in with ${issuerName(issuer)}`,
        ),
      ),
      el("p", { class: "small or" }, "or with a ticket"),
    );
    button.classList.toggle("primary", issuers.length === 0);
  }
  /**
   * @param {HTMLButtonElement} chosen
   * @param {Issuer} issuer
   */
  async function begin(chosen, issuer) {
    chosen.disabled = true;
    error.textContent = "";
    try {
      await beginSignIn(issuer, location.hash);
    } catch (failure) {
      error.textContent = sentence(messageOf(failure));
      chosen.disabled = false;
    }
  }
  const title = el("h1", {}, el("span", { class: "mark", "aria-hidden": "true" }), "Signalbox");
  root.replaceChildren(el("main", { class: "sign-in" }, el("div", { class: "card" }, title, form)));
  (realm.value ? authid : realm).focus();
  offer();
}

/** @param {string} text */
function sentence(text) {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
}
