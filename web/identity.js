// Sign-in with an identity provider: authorization code with PKCE (RFC 7636), and renewal of tokens, which are kept in
// memory only.

import { el } from "./dom.js";

/**
 * An issuer of a realm, as in config.json.
 * @typedef {{ realm: string, url: string, client_id: string, audience: string, label: string }} Issuer
 */

/**
 * A sign-in that has begun. It is stored while the provider's pages are shown, and removed when they return.
 * @typedef {object} Pending
 * @property {Issuer} issuer
 * @property {string} address the address in the page to return to
 * @property {string} state
 * @property {string} nonce
 * @property {string} verifier
 */

/** The endpoints of a provider, as in its discovery document. @typedef {Record<string, any>} Endpoints */

/** The answer of a token endpoint. @typedef {Record<string, any>} TokenAnswer */

const PENDING_KEY = "signalbox.sign-in";
const SCOPE = "openid offline_access";
const MARGIN_SECONDS = 120; // a token is renewed so long before its end, or when two thirds of its life have passed
const SILENT_TIMEOUT_MS = 20_000;
const REQUEST_TIMEOUT_MS = 20_000;

/** A failed sign-in or renewal. A temporary one may succeed later, without the user. */
export class SignInError extends Error {
  /**
   * @param {string} message
   * @param {{ isTemporary?: boolean }} [options]
   */
  constructor(message, { isTemporary = false } = {}) {
    super(message);
    this.isTemporary = isTemporary;
  }
}

/**
 * Return the name of an issuer for people.
 * @param {Issuer} issuer
 */
export function issuerName(issuer) {
  return issuer.label || new URL(issuer.url).host;
}

/**
 * Go to the provider's page. It returns to this one, with a code in the address.
 * @param {Issuer} issuer
 * @param {string} address the address in the page to return to
 */
export async function beginSignIn(issuer, address) {
  const endpoints = await discover(issuer);
  const pending = newPending(issuer, address);
  sessionStorage.setItem(PENDING_KEY, JSON.stringify(pending));
  location.assign(await authorizationUrl(endpoints, pending, pageUrl()));
}

/**
 * Return the sign-in that has begun in this tab, if any, and remove it: a code is used once.
 * @returns {Pending | null}
 */
export function takePending() {
  const stored = sessionStorage.getItem(PENDING_KEY);
  sessionStorage.removeItem(PENDING_KEY);
  try {
    return JSON.parse(stored ?? "null");
  } catch {
    return null;
  }
}

/**
 * Return the provider's answer in the address of the page, and remove it from the address.
 * @param {string} address what the page shows next, such as `#/topics`
 */
export function takeAnswer(address) {
  const answer = new URLSearchParams(location.search);
  if (!answer.has("state") && !answer.has("error")) return null;
  history.replaceState(null, "", `${location.pathname}${address}`);
  return answer;
}

/**
 * Return the signed-in user of a provider's answer. Rejects with a `SignInError`.
 * @param {URLSearchParams} answer
 * @param {Pending | null} pending
 * @param {readonly Issuer[]} issuers the issuers that the stage trusts now
 */
export async function finishSignIn(answer, pending, issuers) {
  if (!pending) throw new SignInError("this sign-in did not begin in this tab: sign in again");
  const issuer = issuers.find((one) => one.realm === pending.issuer.realm && one.url === pending.issuer.url);
  if (!issuer) throw new SignInError(`the realm no longer accepts ${issuerName(pending.issuer)}: ask its owner`);
  const endpoints = await discover(issuer);
  const tokens = await redeem(endpoints, pending, answer, pageUrl());
  return new SignedIn(issuer, endpoints, tokens);
}

/** A user who has signed in. */
export class SignedIn {
  /**
   * @param {Issuer} issuer
   * @param {Endpoints} endpoints
   * @param {TokenAnswer} answer
   */
  constructor(issuer, endpoints, answer) {
    this.issuer = issuer;
    this.endpoints = endpoints;
    this.refreshToken = "";
    this.current = "";
    this.endsAt = Number.POSITIVE_INFINITY;
    this.renewAt = Number.POSITIVE_INFINITY;
    /** @type {Promise<string> | null} */
    this.renewing = null;
    this._keep(answer);
  }

  /** Whether it is time for a new token. */
  get isDue() {
    return Date.now() >= this.renewAt;
  }

  /** Return a token that is not about to end. Rejects with a `SignInError`. */
  async token() {
    if (!this.isDue) return this.current;
    this.renewing ??= this._renew().finally(() => {
      this.renewing = null;
    });
    return this.renewing;
  }

  /** Revoke what the provider would renew, and go to its page for signing out, if it has one. */
  async end() {
    const { revocation_endpoint: revocation, end_session_endpoint: end } = this.endpoints;
    if (revocation && this.refreshToken) {
      const form = { token: this.refreshToken, token_type_hint: "refresh_token", client_id: this.issuer.client_id };
      // It ends by itself, too; signing out does not depend on it.
      await post(revocation, form).catch(() => null);
    }
    this.current = "";
    this.refreshToken = "";
    const query = new URLSearchParams({ client_id: this.issuer.client_id, post_logout_redirect_uri: pageUrl() });
    if (end) location.assign(`${end}?${query}`);
    else location.reload();
  }

  async _renew() {
    this._keep(this.refreshToken ? await this._refreshed() : await this._silently());
    return this.current;
  }

  _refreshed() {
    return post(this.endpoints.token_endpoint, {
      grant_type: "refresh_token",
      refresh_token: this.refreshToken,
      client_id: this.issuer.client_id,
      ...audienceOf(this.issuer),
    });
  }

  /** Ask the provider in a hidden frame: it answers without the user while its own session goes on. */
  async _silently() {
    const pending = newPending(this.issuer, "");
    const redirect = new URL("renewed.html", pageUrl()).href;
    const answer = await answerInFrame(`${await authorizationUrl(this.endpoints, pending, redirect)}&prompt=none`);
    return redeem(this.endpoints, pending, answer, redirect);
  }

  /** @param {TokenAnswer} answer */
  _keep(answer) {
    const { client_id: client, audience } = this.issuer;
    const token = client === audience ? answer.id_token : answer.access_token;
    if (!token) throw new SignInError(`${issuerName(this.issuer)} sent no token for this realm: ask its owner`);
    this.current = token;
    this.refreshToken = answer.refresh_token ?? this.refreshToken;
    const { exp, iat } = claimsOf(token);
    if (!exp) return;
    const now = Date.now() / 1000;
    const life = exp - (iat ?? now);
    // At most its whole life: a slow clock does not delay the renewal of a new token.
    const left = Math.min(exp - now, life);
    this.endsAt = (now + left) * 1000;
    this.renewAt = (now + left - Math.min(MARGIN_SECONDS, life / 3)) * 1000;
  }
}

/** Return the address of the page, which providers return to. */
function pageUrl() {
  return new URL("./", `${location.origin}${location.pathname}`).href;
}

/**
 * @param {Issuer} issuer
 * @param {string} address
 * @returns {Pending}
 */
function newPending(issuer, address) {
  return { issuer, address, state: randomText(), nonce: randomText(), verifier: randomText() };
}

/**
 * Return the endpoints of an issuer.
 * @param {Issuer} issuer
 * @returns {Promise<Endpoints>}
 */
async function discover(issuer) {
  const endpoints = await fetched(`${issuer.url.replace(/\/$/, "")}/.well-known/openid-configuration`);
  // OpenID Connect Discovery 1.0, 4.3: otherwise another provider could be impersonated.
  if (endpoints.issuer !== issuer.url) {
    throw new SignInError(`${issuer.url} describes the issuer ${endpoints.issuer}: the realm's owner must correct it`);
  }
  return endpoints;
}

/**
 * @param {Endpoints} endpoints
 * @param {Pending} pending
 * @param {string} redirect
 */
async function authorizationUrl(endpoints, { issuer, state, nonce, verifier }, redirect) {
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(verifier));
  const url = new URL(endpoints.authorization_endpoint);
  const parameters = {
    response_type: "code",
    client_id: issuer.client_id,
    redirect_uri: redirect,
    scope: SCOPE,
    state,
    nonce,
    code_challenge: base64Url(new Uint8Array(digest)),
    code_challenge_method: "S256",
    ...audienceOf(issuer),
  };
  for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value);
  return url.href;
}

/**
 * Exchange the code of an answer for tokens. Rejects with a `SignInError` if the answer is not that of this sign-in.
 * @param {Endpoints} endpoints
 * @param {Pending} pending
 * @param {URLSearchParams} answer
 * @param {string} redirect
 */
async function redeem(endpoints, { issuer, state, nonce, verifier }, answer, redirect) {
  if (answer.get("state") !== state) throw new SignInError("the answer is not that of this sign-in: sign in again");
  const from = answer.get("iss"); // RFC 9207
  if (from !== null && from !== issuer.url) throw new SignInError("another provider answered: sign in again");
  const error = answer.get("error");
  if (error) throw refusal(error, answer.get("error_description") ?? "");
  const tokens = await post(endpoints.token_endpoint, {
    grant_type: "authorization_code",
    code: answer.get("code") ?? "",
    redirect_uri: redirect,
    client_id: issuer.client_id,
    code_verifier: verifier,
    ...audienceOf(issuer),
  });
  checkIdToken(claimsOf(tokens.id_token ?? ""), issuer, nonce);
  return tokens;
}

/**
 * Check the ID token of a code (OpenID Connect Core, 3.1.3.7). It came from the token endpoint over TLS, so that its
 * signature needs no check; the router checks that of the token that the page presents.
 * @param {Record<string, any>} claims
 * @param {Issuer} issuer
 * @param {string} nonce
 */
function checkIdToken({ iss, aud, nonce: given }, issuer, nonce) {
  const isForUs = [aud].flat().includes(issuer.client_id);
  if (iss !== issuer.url || !isForUs || given !== nonce) {
    throw new SignInError("the provider's answer is not for this sign-in: sign in again");
  }
}

/**
 * Return the parameters that request an access token for the realm; an ID token needs none.
 * @param {Issuer} issuer
 * @returns {Record<string, string>}
 */
function audienceOf({ client_id: client, audience }) {
  if (client === audience) return {};
  return URL.canParse(audience) ? { audience, resource: audience } : { audience }; // RFC 8707
}

/**
 * Load an address of the provider in a hidden frame, until it returns to `renewed.html`.
 * @param {string} url
 * @returns {Promise<URLSearchParams>}
 */
function answerInFrame(url) {
  return new Promise((resolve, reject) => {
    const frame = el("iframe", { hidden: true, src: url, title: "Renewal of the sign-in", "aria-hidden": "true" });
    /** @param {() => void} settle */
    const end = (settle) => {
      clearTimeout(timer);
      removeEventListener("message", receive);
      frame.remove();
      settle();
    };
    /** @param {MessageEvent} event */
    const receive = ({ origin, source, data }) => {
      if (origin !== location.origin || source !== frame.contentWindow) return;
      end(() => resolve(new URLSearchParams(data)));
    };
    const late = new SignInError("the provider does not answer in a frame", { isTemporary: true });
    const timer = setTimeout(() => end(() => reject(late)), SILENT_TIMEOUT_MS);
    addEventListener("message", receive);
    document.body.append(frame);
  });
}

/**
 * @param {string} url
 * @param {Record<string, string>} form
 */
function post(url, form) {
  return fetched(url, { method: "POST", body: new URLSearchParams(form) });
}

/**
 * Return the JSON document of a provider. Rejects with a `SignInError`.
 * @param {string} url
 * @param {RequestInit} [request]
 * @returns {Promise<Record<string, any>>}
 */
async function fetched(url, request = {}) {
  const { host } = new URL(url);
  let answer;
  try {
    answer = await fetch(url, { ...request, credentials: "omit", signal: AbortSignal.timeout(REQUEST_TIMEOUT_MS) });
  } catch {
    throw new SignInError(`${host} cannot be reached from this page: try again, or ask the realm's owner`, {
      isTemporary: true,
    });
  }
  if (answer.status >= 500 || answer.status === 429) {
    throw new SignInError(`${host} answers ${answer.status}: try again later`, { isTemporary: true });
  }
  const document = await answer.json().catch(() => ({}));
  if (!answer.ok) throw refusal(document.error ?? String(answer.status), document.error_description ?? "");
  return document;
}

/**
 * Return the error for a code of OAuth (RFC 6749, 4.1.2.1 and 5.2) or OpenID Connect (Core, 3.1.2.6).
 * @param {string} code
 * @param {string} description
 */
function refusal(code, description) {
  const texts = new Map([
    ["access_denied", "the sign-in was refused at the provider: sign in again, or ask the realm's owner"],
    ["invalid_grant", "the sign-in has ended at the provider: sign in again"],
    ["login_required", "the sign-in has ended at the provider: sign in again"],
    ["interaction_required", "the provider needs you: sign in again"],
    ["consent_required", "the provider needs your consent: sign in again"],
  ]);
  const isTemporary = code === "temporarily_unavailable" || code === "server_error";
  return new SignInError(texts.get(code) ?? `the provider refuses the sign-in: ${description || code}`, {
    isTemporary,
  });
}

/**
 * Return the claims of a JWT, unverified; empty for a token of another format.
 * @param {string} token
 * @returns {Record<string, any>}
 */
function claimsOf(token) {
  try {
    const bytes = atob(token.split(".")[1].replaceAll("-", "+").replaceAll("_", "/"));
    return JSON.parse(new TextDecoder().decode(Uint8Array.from(bytes, (byte) => byte.charCodeAt(0)))) ?? {};
  } catch {
    return {};
  }
}

function randomText() {
  return base64Url(crypto.getRandomValues(new Uint8Array(32)));
}

/** @param {Uint8Array} bytes */
function base64Url(bytes) {
  return btoa(String.fromCharCode(...bytes))
    .replaceAll("+", "-")
    .replaceAll("/", "_")
    .replaceAll("=", "");
}
