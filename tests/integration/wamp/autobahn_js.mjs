// autobahn-js as a program that does what lines say.
import autobahn from "autobahn";
import { serve, tell } from "./lines.mjs";

console.error = () => {};
if (autobahn.log?.debug) autobahn.log.debug = () => {};

serve((login) => {
  const wanted = new Map();
  const subscribed = new Map();
  let session = null;
  const connection = new autobahn.Connection({
    url: login.url,
    realm: login.realm,
    authmethods: [login.method],
    authid: login.user,
    max_retries: -1,
    initial_retry_delay: 0.3,
    max_retry_delay: 2,
    onchallenge: (_session, method, extra) =>
      method === "ticket"
        ? login.secret
        : autobahn.auth_cra.sign(
            autobahn.auth_cra.derive_key(login.secret, extra.salt, extra.iterations, extra.keylen),
            extra.challenge,
          ),
  });

  async function subscribe({ name, topic, options }) {
    const received = (args, kwargs, details) =>
      tell({
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
    subscribed.set(name, subscription);
    subscription.on_unsubscribe.then((reason) => {
      if (reason) tell({ revoked: name, reason: typeof reason === "string" ? reason : JSON.stringify(reason) });
    });
    return subscription.id;
  }

  connection.onopen = async (opened, details) => {
    session = opened;
    for (const one of wanted.values()) await subscribe(one);
    tell({ joined: details.authid, session: session.id, role: details.authrole });
  };
  connection.onclose = (reason, details) => {
    tell({ left: details.reason ?? reason, text: details.message ?? "" });
    return false;
  };
  connection.open();

  return {
    async carryOut(said) {
      switch (said.do) {
        case "subscribe": {
          const id = await subscribe(said);
          wanted.set(said.name, said);
          return id;
        }
        case "unsubscribe":
          wanted.delete(said.name);
          await session.unsubscribe(subscribed.get(said.name));
          return null;
        case "publish": {
          const options = { acknowledge: true, ...said.options };
          return (await session.publish(said.topic, said.args ?? [], said.kwargs ?? {}, options)).id;
        }
        default: {
          const result = await session.call(said.procedure, said.args ?? [], said.kwargs ?? {});
          const isNamed = result instanceof autobahn.Result;
          return { args: isNamed ? result.args : [result], kwargs: (isNamed && result.kwargs) || {} };
        }
      }
    },
  };
});
