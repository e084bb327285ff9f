"""The small scope that is explored: two clients and two proxies, and the steps of an offer that this finds."""

from functools import partial
from typing import Any

from signalbox.rendezvous.wire.nat import Nat
from tests.simulation import guarantees, run  # noqa: F401 - which installs the stand-ins
from tests.simulation.explore import CALM, ExploredCalls, ExploringKernel, Search, explore
from tests.simulation.rendezvous import BROKER, PREFIX, RendezvousWorld
from tests.simulation.world import World

CLIENT_IDS = ("client1", "client2")
# The proxies with the times of their polls: while the offers arrive, and after what a crash has left came again.
POLLS = ((0, 0.0), (1, 0.0), (1, 8.0))


class SmallRendezvous(RendezvousWorld):
    """Two clients with an offer each, and two proxies that poll and answer what they get."""

    def __init__(self, kernel: ExploringKernel) -> None:
        super().__init__(0, kernel=kernel, weather=CALM)
        calls = ExploredCalls(kernel, self.protocol)
        calls.services = self.calls.services
        self.calls = calls

    def _make_clients(self) -> None:
        for client_id in CLIENT_IDS:
            self.actor(client_id, partial(self._send, client_id, Nat.UNRESTRICTED, is_valid=True))
        for number, at in POLLS:
            self.actor(f"proxy{number}", partial(self._poll, number, Nat.UNRESTRICTED), after=at)

    def run(self) -> None:
        """Run until everything should have ended, and longer if queues are left, which are found as strays."""
        World.run(self)
        if any(name.startswith(PREFIX + one) for name in self.sqs.queues for one in CLIENT_IDS):
            super().run()

    def protocol(self) -> dict[str, str]:
        """Return the state of each offer: its message, its record, and the replies to it."""
        records = {
            sort.partition("#")[2]: str(item["state"])
            for known in self.dynamodb.tables["Rendezvous"].items.values()
            for sort, item in known.items()
            if "state" in item
        }
        queued = {_client_of(message) for message in self.sqs.queues[BROKER].messages.values()}
        return {
            one: ", ".join(
                (
                    "offer in the queue" if one in queued else "no offer",
                    records.get(one, "no record"),
                    f"{len(self.replies(one))} replies",
                )
            )
            for one in CLIENT_IDS
        }


def _client_of(message: Any) -> str:
    return str(message.attributes["ClientID"]["StringValue"])


def rendezvous(most_states: int) -> Search:
    """Explore two clients and two proxies."""
    return explore(SmallRendezvous, guarantees.RENDEZVOUS, most_states=most_states)


def report(most_states: int) -> int:
    """Explore the scope within a number of states, print its steps, and return 1 if a guarantee is broken."""
    search = rendezvous(most_states)
    print("\n".join(table(search)))
    end = "no other state is left" if search.is_complete else f"{len(search.waiting)} orders are left"
    print(f"{search.runs} runs, {len(search.states)} states; {end}")
    for name, problem in search.broken.items():
        print(f"BROKEN {name}: {problem}")
    return 1 if search.broken else 0


def table(search: Search) -> list[str]:
    """Return the steps that were found as a table of a page."""
    lines = ["| State of an offer | Step | State after it |", "|---|---|---|"]
    return lines + [f"| {before} | {step} | {after} |" for before, step, after in sorted(search.steps)]
