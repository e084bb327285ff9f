// Renewal of a signed-in user's token on the open session, and the notice when that fails.

import { clock, el, messageOf } from "./dom.js";
import { beginSignIn, SignInError } from "./identity.js";

/** @import { SignedIn } from "./identity.js" */
/** @import { Client } from "./wamp.js" */

const PROCEDURE = "signalbox.session.renew";
const UNAVAILABLE = "wamp.error.unavailable";
const CONNECTION_ERRORS = new Set(["signalbox.error.connection_lost", "signalbox.error.not_connected"]);
const CHECK_MS = 2_000; // a timer for the moment itself would be late after the machine has slept
const RETRY_MS = 10_000;

/** Gives the router each new token, before the one that the session has ends. */
export class Renewals {
  /**
   * @param {Client} client
   * @param {SignedIn} signedIn
   */
  constructor(client, signedIn) {
    this.client = client;
    this.signedIn = signedIn;
    this.retryAt = 0;
    this.isBusy = false;
    this.text = el("span", {});
    /** The notice that the session will end. */
    this.notice = el(
      "p",
      { class: "renewal", role: "status", hidden: true },
      this.text,
      el("button", { type: "button", onclick: () => this._signIn() }, "Sign in again"),
    );
    this.timer = setInterval(() => this._renewIfDue(), CHECK_MS);
  }

  /** Renew no more: the session has ended. */
  stop() {
    clearInterval(this.timer);
    this.notice.hidden = true;
  }

  async _renewIfDue() {
    // The session may have an older token than the page, if the router could not check the newest one.
    const isDue = this.signedIn.isDue || this.client.ticket !== this.signedIn.current;
    if (!isDue || this.isBusy || !this.client.isLive || Date.now() < this.retryAt) return;
    this.isBusy = true;
    this.retryAt = Date.now() + RETRY_MS;
    try {
      const token = await this.signedIn.token();
      await this.client.call(PROCEDURE, [token]);
      this.client.ticket = token;
      this.retryAt = 0;
      this.notice.hidden = true;
    } catch (error) {
      this._failed(error);
    } finally {
      this.isBusy = false;
    }
  }

  /** @param {unknown} error */
  _failed(error) {
    const { uri = "" } = /** @type {{ uri?: string }} */ (error);
    if (CONNECTION_ERRORS.has(uri)) return; // the next session begins with the new token
    const isTemporary = uri === UNAVAILABLE || (error instanceof SignInError && error.isTemporary);
    if (!isTemporary) clearInterval(this.timer);
    this._show(messageOf(error));
  }

  /** @param {string} reason */
  _show(reason) {
    const end = clock(this.signedIn.endsAt);
    this.text.textContent = `Events end at ${end}, because the sign-in is not renewed: ${reason}.`;
    this.notice.hidden = false;
  }

  async _signIn() {
    try {
      await beginSignIn(this.signedIn.issuer, location.hash);
    } catch (error) {
      this._show(messageOf(error));
    }
  }
}
