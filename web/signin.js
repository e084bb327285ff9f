// The sign-in form. The page keeps the ticket in memory only; a browser's password manager may store it.

import { el } from "./dom.js";

/** @typedef {{ websocket_url: string, realms?: string[] }} Config */
/** @typedef {{ realm: string, authid: string, ticket: string }} Identity */

const REALM_KEY = "signalbox.realm";

/**
 * Show the form in place of the page.
 * @param {HTMLElement} root
 * @param {Config} config
 * @param {(identity: Identity) => Promise<string>} join joins the realm, and returns the reason of a failure or an
 *   empty string
 */
export function showSignIn(root, config, join) {
  const realms = config.realms ?? [];
  const realm = el("input", {
    id: "realm",
    name: "realm",
    required: true,
    list: "realms",
    autocomplete: "off",
    autocapitalize: "none",
    spellcheck: "false",
    value: localStorage.getItem(REALM_KEY) ?? realms[0] ?? "",
  });
  const authid = el("input", {
    id: "authid",
    name: "username",
    autocomplete: "username",
    autocapitalize: "none",
    spellcheck: "false",
  });
  const ticket = el("input", { id: "ticket", name: "password", type: "password", autocomplete: "current-password" });
  const error = el("p", { class: "problem", role: "alert" });
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
      localStorage.setItem(REALM_KEY, realm.value.trim());
      return;
    }
    error.textContent = `${reason.charAt(0).toUpperCase()}${reason.slice(1)}.`;
    ticket.select();
  });
  const title = el("h1", {}, el("span", { class: "mark", "aria-hidden": "true" }), "Signalbox");
  root.replaceChildren(el("main", { class: "sign-in" }, el("div", { class: "card" }, title, form)));
  (realm.value ? authid : realm).focus();
}
