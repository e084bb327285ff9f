// wampy as a program that executes the commands of `lines.mjs`. wampy subscribes again by itself when it reconnects.
import { Wampy } from "wampy";
import * as wampyCra from "wampy/wampcra.js";
import WebSocket from "ws";
import { print, serve } from "./lines.mjs";

/** @import { Event } from "wampy" */
/** @import { Command } from "./lines.mjs" */

/** @typedef {(event: Event) => void} Handler */

serve((login) => {
  /** @type {Map<string, [key: string, handler: Handler]>} */
  const subscriptions = new Map();
  /** @param {Record<string, any>} welcome */
  const joined = (welcome) =>
    print({ joined: welcome.authid, session: client.getSessionId?.(), role: welcome.authrole });
  const client = new Wampy(login.url, {
    realm: login.realm,
    ws: WebSocket,
    uriValidation: "loose",
    autoReconnect: true,
    reconnectInterval: 300,
    maxRetries: 1000,
    ...(login.method === "anonymous" ? {} : { authid: login.user, authmethods: [login.method] }),
    /**
     * @param {string} method
     * @param {object} extra
     */
    onChallenge: (method, extra) => (method === "ticket" ? login.secret : wampyCra.sign(login.secret)(method, extra)),
    onReconnectSuccess: joined,
    onClose: () => print({ left: "closed", text: "" }),
    onError: () => {},
  });
  client
    .connect()
    .then(joined, (error) => print({ left: error.errorUri ?? error.message, text: String(error.message) }));

  /** @param {Command} command */
  async function subscribe({ name, topic, options }) {
    /** @type {Handler} */
    const received = ({ details, argsList, argsDict }) =>
      print({
        event: name,
        args: argsList ?? [],
        kwargs: argsDict ?? {},
        topic: details.topic ?? topic,
        publication: details.publication ?? null,
        retained: Boolean(details.retained),
        publisher: details.publisher ?? null,
        authid: details.publisher_authid ?? null,
      });
    const subscription = await client.subscribe(topic, received, options);
    subscriptions.set(name, [subscription.subscriptionKey, received]);
    return subscription.subscriptionId;
  }

  /** @param {string} name */
  async function unsubscribe(name) {
    const subscription = subscriptions.get(name);
    if (subscription) await client.unsubscribe(...subscription);
    return null;
  }

  return {
    async execute(command) {
      const payload = { argsList: command.args ?? [], argsDict: command.kwargs ?? {} };
      switch (command.do) {
        case "subscribe":
          return subscribe(command);
        case "unsubscribe":
          return unsubscribe(command.name);
        case "publish":
          return (await client.publish(command.topic, payload, command.options)).publicationId;
        default: {
          const result = await client.call(command.procedure, payload);
          return { args: result.argsList ?? [], kwargs: result.argsDict ?? {} };
        }
      }
    },
  };
});
