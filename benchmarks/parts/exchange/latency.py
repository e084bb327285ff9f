"""The latency from a publisher to a queue, through an exchange and directly, on the emulator."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from benchmarks.shared.figures import Summary
from benchmarks.shared.ways import Way, measure
from signalbox.cli.exchange.stage import client_of

if TYPE_CHECKING:
    from signalbox.clients.deployment import Deployment

MESSAGES = 100
KEY = "v03.bulletins.benchmark"
EXCHANGE, QUEUE, DIRECT = "xs_benchmark", "q_benchmark", "q_benchmark_direct"
OTHER_BINDINGS = 100  # of the same queue, which do not match


def on_stage(deployment: "Deployment", *, messages: int, say: Callable[[str], None]) -> dict[str, Summary]:
    """Return the milliseconds to a queue of each way: standard and ordered, directly and through an exchange."""
    client = client_of(deployment)
    ways: list[Way] = []
    for suffix in ("", ".fifo"):
        say(f"an exchange {EXCHANGE + suffix}")
        source = client.declare_exchange(EXCHANGE + suffix)["url"]
        bound, direct = (client.declare_queue(name + suffix)["url"] for name in (QUEUE, DIRECT))
        client.bind(EXCHANGE + suffix, QUEUE + suffix, "v03.bulletins.#")
        for number in range(OTHER_BINDINGS):
            client.bind(EXCHANGE + suffix, QUEUE + suffix, f"v03.other.{number}.#")
        kind, group = ("ordered", KEY) if suffix else ("standard", None)
        ways.append(Way(f"{kind}, directly", direct, direct, {"topic": KEY}, group))
        ways.append(Way(f"{kind}, through an exchange", source, bound, {"topic": KEY}, group))
    return measure(deployment.session().client("sqs"), ways, messages=messages, say=say)
