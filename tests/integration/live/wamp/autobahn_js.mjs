// autobahn-js as a program that executes the commands of `lines.mjs`.
import autobahn from "autobahn";
import { print, serve } from "./lines.mjs";

/** @import { Command } from "./lines.mjs" */

console.error = () => {};
if (autobahn.log?.debug) autobahn.log.debug = () => {};

serve((login) => {
  /** @type {Map<string, Command>} the subscribe commands to repeat in each session */
  const commands = new Map();
  /** @type {Map<string, autobahn.Subscription>} */
  const subscriptions = new Map();
  /** @type {autobahn.Session} */
  let session;

  /**
   * @param {unknown} _session
   * @param {string} method
   * @param {{ salt: string, iterations: number, keylen: number, challenge: string }} extra
   */
  function onchallenge(_session, method, extra) {
    if (method === "ticket") return login.secret;
    const key = autobahn.auth_cra.derive_key(login.secret, extra.salt, extra.iterations, extra.keylen);
    return autobahn.auth_cra.sign(key, extra.challenge);
  }

  const connection = new autobahn.Connection({
    url: login.url,
    realm: login.realm,
    authmethods: [login.method],
    authid: login.user,
    max_retries: -1,
    initial_retry_delay: 0.3,
    max_retry_delay: 2,
    onchallenge,
  });

  /** @param {Command} command */
  async function subscribe({ name, topic, options }) {
    /** @type {autobahn.Handler} */
    const received = (args, kwargs, details) =>
      print({
        event: name,
        args: args ?? [],
        kwargs: kwargs ?? {},
        topic: details.topic,
        publication: details.publication,
        retained: Boolean(details.retained),
        publisher: details.publisher ?? null,
        authid: details.publisher_authid ?? null,
      });
    const subscription = await session.subscribe(topic, received, options ?? {});
    subscriptions.set(name, subscription);
    subscription.on_unsubscribe.then((reason) => {
      if (reason) print({ revoked: name, reason: typeof reason === "string" ? reason : JSON.stringify(reason) });
    });
    return subscription.id;
  }

  /** @param {string} name */
  async function unsubscribe(name) {
    const subscription = subscriptions.get(name);
    commands.delete(name);
    if (subscription) await session.unsubscribe(subscription);
    return null;
  }

  connection.onopen = async (opened, details) => {
    session = opened;
    for (const command of commands.values()) await subscribe(command);
    print({ joined: details.authid, session: session.id, role: details.authrole });
  };
  connection.onclose = (reason, details) => {
    print({ left: details.reason ?? reason, text: details.message ?? "" });
    return false;
  };
  connection.open();

  return {
    async execute(command) {
      const { args = [], kwargs = {} } = command;
      switch (command.do) {
        case "subscribe": {
          const id = await subscribe(command);
          commands.set(command.name, command);
          return id;
        }
        case "unsubscribe":
          return unsubscribe(command.name);
        case "publish":
          return (await session.publish(command.topic, args, kwargs, { acknowledge: true, ...command.options })).id;
        default: {
          const result = await session.call(command.procedure, args, kwargs);
          const isNamed = result instanceof autobahn.Result;
          return { args: isNamed ? result.args : [result], kwargs: (isNamed && result.kwargs) || {} };
        }
      }
    },
  };
});
