// Signing in with a ticket. It is kept in memory alone; browsers and their password managers may keep it.

import { el } from "./dom.js";

const REALM = "signalbox.realm";

export function showSignIn(root, config, problem, join) {
  const realms = config.realms ?? [];
  const realm = el("input", {
    id: "realm",
    name: "realm",
    required: true,
    list: "realms",
    autocomplete: "off",
    autocapitalize: "none",
    spellcheck: "false",
    value: localStorage.getItem(REALM) ?? realms[0] ?? "",
  });
  const authid = el("input", {
    id: "authid",
    name: "username",
    autocomplete: "username",
    autocapitalize: "none",
    spellcheck: "false",
  });
  const ticket = el("input", { id: "ticket", name: "password", type: "password", autocomplete: "current-password" });
  const trouble = el("p", { class: "problem", role: "alert" }, problem);
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
    trouble,
    button,
    el("p", { class: "small" }, "Without a name you join as anonymous, where the realm allows it."),
  );
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    button.disabled = true;
    trouble.textContent = "";
    const reason = await join({ realm: realm.value.trim(), authid: authid.value.trim(), ticket: ticket.value });
    button.disabled = false;
    if (!reason) {
      localStorage.setItem(REALM, realm.value.trim());
      return;
    }
    trouble.textContent = `${reason.charAt(0).toUpperCase()}${reason.slice(1)}.`;
    ticket.select();
  });
  root.replaceChildren(
    el(
      "main",
      { class: "sign-in" },
      el(
        "div",
        { class: "card" },
        el("h1", {}, el("span", { class: "mark", "aria-hidden": "true" }), "Signalbox"),
        form,
      ),
    ),
  );
  (realm.value ? authid : realm).focus();
}
