// A real OpenID provider on loopback: the package `oidc-provider`, which is certified by the OpenID Foundation, with
// test users and clients. Run with the path of `node_modules` and the settings as JSON; each line on stdin is a JSON
// object of settings to change, or `{"rotate_keys": true}`, and each line on stdout is the answer. It ends when stdin
// ends.

import { generateKeyPairSync, randomBytes } from "node:crypto";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

/** @typedef {{ email?: string, email_verified?: boolean, groups?: string[], role?: string }} User */

/**
 * What a line may change. `lifetime` is that of access and ID tokens in seconds; `pages` are the redirect URLs.
 * @typedef {object} Settings
 * @property {number} port 0 for any free port
 * @property {string} audience the resource that access tokens are for (RFC 8707)
 * @property {number} lifetime
 * @property {string[]} pages
 * @property {Record<string, User>} users
 */

/** @typedef {import("node:http").RequestListener} Listener */

const main = pathToFileURL(createRequire(`${process.argv[2]}/`).resolve("oidc-provider"));
const { default: Provider, errors } = await import(main.href);
const { default: MemoryAdapter } = await import(new URL("adapters/memory_adapter.js", main).href);

console.info = console.warn; // the package's notices: stdout is for the answers

/** @type {Settings} */
const settings = JSON.parse(process.argv[3] ?? "{}");
const CLIENT = "signalbox"; // the live page and the command
const SILENT_CLIENT = "signalbox-silent"; // gets no refresh tokens
const DEVICE = "urn:ietf:params:oauth:grant-type:device_code";
const CLAIMS = ["email", "email_verified", "groups", "role"];
const cookieKeys = [randomBytes(16).toString("hex")];
let keys = [newKey(1)];
/** @type {Listener} */
let listener = (_, response) => response.end();

/** @param {number} number */
function newKey(number) {
  const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  return { ...privateKey.export({ format: "jwk" }), kid: `key-${number}`, use: "sig", alg: "RS256" };
}

/** @param {string} name */
function claimsOf(name) {
  return { sub: name, ...settings.users[name] };
}

/**
 * @param {string} client_id
 * @param {string[]} grant_types
 */
function client(client_id, grant_types) {
  return {
    client_id,
    client_name: "Signalbox",
    token_endpoint_auth_method: "none",
    grant_types,
    redirect_uris: settings.pages,
    post_logout_redirect_uris: settings.pages,
    response_types: ["code"],
  };
}

/**
 * Return the request listener of a provider with the present settings. What one has issued, the next one accepts: they
 * share the package's store in memory.
 * @param {string} issuer
 * @returns {Listener}
 */
function newListener(issuer) {
  const resource = {
    scope: "live",
    audience: settings.audience,
    accessTokenFormat: "jwt",
    jwt: { sign: { alg: "RS256" } },
  };
  const lifetime = () => settings.lifetime;
  const provider = new Provider(issuer, {
    adapter: (/** @type {string} */ model) => new MemoryAdapter(model),
    clients: [
      client(CLIENT, ["authorization_code", DEVICE, "refresh_token"]),
      client(SILENT_CLIENT, ["authorization_code"]),
    ],
    jwks: { keys },
    cookies: { keys: cookieKeys },
    claims: { openid: ["sub", ...CLAIMS] },
    conformIdTokenClaims: false, // so that ID tokens have the claims, too
    /** @param {unknown} _ @param {string} name */
    findAccount: (_, name) =>
      settings.users[name] ? { accountId: name, claims: async () => claimsOf(name) } : undefined,
    /** @param {unknown} _ @param {{ accountId?: string }} token */
    extraTokenClaims: (_, token) => (token.accountId ? settings.users[token.accountId] : undefined),
    // As Keycloak does; the default policy also demands a prompt for consent at each sign-in.
    issueRefreshToken: async (/** @type {unknown} */ _, /** @type {any} */ of) => of.grantTypeAllowed("refresh_token"),
    ttl: { AccessToken: lifetime, IdToken: lifetime, RefreshToken: 86_400, Session: 86_400, Grant: 86_400 },
    clientBasedCORS: (/** @type {unknown} */ _, /** @type {string} */ origin) =>
      settings.pages.some((page) => new URL(page).origin === origin),
    features: {
      deviceFlow: { enabled: true },
      revocation: { enabled: true },
      resourceIndicators: {
        enabled: true,
        defaultResource: () => undefined,
        useGrantedResource: () => true,
        /** @param {unknown} _ @param {string} indicator */
        getResourceServerInfo: (_, indicator) => {
          if (indicator === settings.audience) return resource;
          throw new errors.InvalidTarget();
        },
      },
    },
  });
  return provider.callback();
}

/** @param {Partial<Settings> & { rotate_keys?: boolean }} change */
function changed({ rotate_keys, ...given }) {
  Object.assign(settings, given);
  if (rotate_keys) keys = [newKey(keys.length + 1), ...keys]; // the first one signs, and all are published
}

const server = createServer((request, response) => listener(request, response));
server.listen(settings.port, "127.0.0.1", () => {
  const address = server.address();
  const issuer = `http://127.0.0.1:${typeof address === "object" ? address?.port : settings.port}`;
  listener = newListener(issuer);
  process.stdout.write(`${JSON.stringify({ issuer })}\n`);
  const lines = createInterface({ input: process.stdin });
  lines.on("line", (line) => {
    changed(JSON.parse(line));
    listener = newListener(issuer);
    process.stdout.write("{}\n");
  });
  lines.on("close", () => process.exit(0));
});
