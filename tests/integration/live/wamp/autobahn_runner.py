"""Autobahn's `ApplicationRunner`, which offers batches, as a program that prints the events of a topic."""

import json
import sys

from autobahn.asyncio.wamp import ApplicationRunner, ApplicationSession

LOGIN = json.loads(sys.stdin.readline())


def write_line(**report):
    print(json.dumps(report), flush=True)


class Follower(ApplicationSession):
    def onConnect(self):  # noqa: N802 - Autobahn's
        self.join(self.config.realm, ["ticket"], LOGIN["user"])

    def onChallenge(self, _challenge):  # noqa: N802 - Autobahn's
        return LOGIN["secret"]

    async def onJoin(self, details):  # noqa: N802 - Autobahn's
        await self.subscribe(lambda value: write_line(value=value), LOGIN["topic"])
        write_line(joined=details.authid, by=details.serializer)


ApplicationRunner(LOGIN["url"], LOGIN["realm"]).run(Follower, log_level="critical")
