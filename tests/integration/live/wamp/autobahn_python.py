"""Autobahn for Python as a program that executes the commands on standard input and prints their results."""

import asyncio
import json
import sys
import threading

from autobahn.asyncio.component import Component, run
from autobahn.wamp.exception import ApplicationError
from autobahn.wamp.types import PublishOptions, SubscribeOptions


def write_line(**report):
    print(json.dumps(report), flush=True)


class Driver:
    def __init__(self, login):
        secret = {"ticket": {"ticket": login.get("secret")}, "wampcra": {"secret": login.get("secret")}}
        method = login["method"]
        known = {method: {"authid": login["user"], **secret[method]}} if method in secret else {"anonymous": {}}
        transport = {"type": "websocket", "url": login["url"], "serializers": ["json"], "max_retries": -1}
        pauses = {"initial_retry_delay": 0.3, "max_retry_delay": 2.0}
        self.component = Component(transports=[{**transport, **pauses}], realm=login["realm"], authentication=known)
        self.session, self.subscribed, self.wanted = None, {}, {}
        self.component.on_join(self.joined)
        self.component.on_leave(self.left)
        self.component.on_connectfailure(lambda _component, error: write_line(failed=str(error)))

    async def joined(self, session, details):
        self.session = session
        for name, (topic, options) in self.wanted.items():
            self.subscribed[name] = await self.subscribe(name, topic, options)
        write_line(joined=details.authid, session=details.session, role=details.authrole)

    async def left(self, _session, details):
        self.session = None
        write_line(left=details.reason, text=details.message)

    async def subscribe(self, name, topic, options):
        def received(*args, details, **kwargs):
            report = {"topic": details.topic, "publication": details.publication, "retained": bool(details.retained)}
            publisher = {"publisher": details.publisher, "authid": details.publisher_authid}
            write_line(event=name, args=args, kwargs=kwargs, **report, **publisher)

        return await self.session.subscribe(received, topic, SubscribeOptions(details_arg="details", **options))

    async def do(self, do, **given):
        if do == "subscribe":
            subscription = await self.subscribe(given["name"], given["topic"], given.get("options", {}))
            self.subscribed[given["name"]] = subscription
            self.wanted[given["name"]] = (given["topic"], given.get("options", {}))
            return subscription.id
        if do == "unsubscribe":
            del self.wanted[given["name"]]
            await self.subscribed.pop(given["name"]).unsubscribe()
            return None
        if do == "publish":
            options = PublishOptions(acknowledge=True, **given.get("options", {}))
            arguments = given.get("args", []), given.get("kwargs", {})
            return (await self.session.publish(given["topic"], *arguments[0], options=options, **arguments[1])).id
        result = await self.session.call(given["procedure"], *given.get("args", []), **given.get("kwargs", {}))
        named = hasattr(result, "kwresults")
        return {"args": result.results if named else [result], "kwargs": (result.kwresults or {}) if named else {}}

    async def carry_out(self, line):
        number = line.pop("id")
        try:
            write_line(id=number, result=await self.do(**line))
        except ApplicationError as error:
            write_line(id=number, error=error.error, text=error.error_message())

    def listen(self, loop):
        for text in sys.stdin:
            asyncio.run_coroutine_threadsafe(self.carry_out(json.loads(text)), loop)
        loop.call_soon_threadsafe(loop.stop)


def main():
    driver = Driver(json.loads(sys.stdin.readline()))
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    threading.Thread(target=driver.listen, args=(loop,), daemon=True).start()
    run([driver.component], log_level="critical")


main()
