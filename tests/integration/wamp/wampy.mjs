// wampy as a program that does what lines say. It subscribes again by itself when it comes back.
import { Wampy } from "wampy";
import * as wampyCra from "wampy/wampcra.js";
import WebSocket from "ws";
import { serve, tell } from "./lines.mjs";

serve((login) => {
  const subscribed = new Map();
  const joined = (welcome) =>
    tell({ joined: welcome.authid, session: client.getSessionId?.(), role: welcome.authrole });
  const client = new Wampy(login.url, {
    realm: login.realm,
    ws: WebSocket,
    uriValidation: "loose",
    autoReconnect: true,
    reconnectInterval: 300,
    maxRetries: 1000,
    ...(login.method === "anonymous" ? {} : { authid: login.user, authmethods: [login.method] }),
    onChallenge: (method, extra) => (method === "ticket" ? login.secret : wampyCra.sign(login.secret)(method, extra)),
    onReconnectSuccess: joined,
    onClose: () => tell({ left: "closed", text: "" }),
    onError: () => {},
  });
  client
    .connect()
    .then(joined, (error) => tell({ left: error.errorUri ?? error.message, text: String(error.message) }));

  return {
    async carryOut(said) {
      switch (said.do) {
        case "subscribe": {
          const received = ({ details, argsList, argsDict }) =>
            tell({
              event: said.name,
              args: argsList ?? [],
              kwargs: argsDict ?? {},
              topic: details.topic ?? said.topic,
              publication: details.publication ?? null,
              retained: Boolean(details.retained),
              publisher: details.publisher ?? null,
              authid: details.publisher_authid ?? null,
            });
          const made = await client.subscribe(said.topic, received, said.options);
          subscribed.set(said.name, [made.subscriptionKey, received]);
          return made.subscriptionId;
        }
        case "unsubscribe":
          await client.unsubscribe(...subscribed.get(said.name));
          return null;
        case "publish": {
          const payload = { argsList: said.args ?? [], argsDict: said.kwargs ?? {} };
          return (await client.publish(said.topic, payload, said.options)).publicationId;
        }
        default: {
          const result = await client.call(said.procedure, { argsList: said.args ?? [], argsDict: said.kwargs ?? {} });
          return { args: result.argsList ?? [], kwargs: result.argsDict ?? {} };
        }
      }
    },
  };
});
