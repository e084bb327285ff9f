"""`signalbox bind --dry-run`: what a binding would change, and the past messages that the queue would have got."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from signalbox.cli.exchange.stage import Document
from signalbox.cli.history.what_if import (
    Past,
    draw,
    figures_of,
    history_of,
    print_messages,
    sentences,
)
from signalbox.cli.shared.nearest import suggestion
from signalbox.cli.shared.output import print_line
from signalbox.errors import RejectedError

if TYPE_CHECKING:
    from signalbox.clients.exchange.client import ExchangeClient
    from signalbox.history.what_if.cost import Cost
    from signalbox.history.what_if.past_messages import PastMessages

# A copy's calls of the router and of the consumer, and its event.
ACTIONS = (("exchange", "copy"), ("history", "event"))


def planned(client: "ExchangeClient", exchange: str, target: str, patterns: Sequence[str]) -> Document:
    """Return the effect of a binding: the patterns that are new and those that are bound, and the queue's owner.

    Raises `RejectedError` for an exchange or a target that the user may not read, or that does not exist.
    """
    from signalbox.exchange.model.patterns import Pattern

    for pattern in patterns:
        Pattern.parse(pattern)
    exchanges = [str(one["exchange"]) for one in client.exchanges()]
    _require(exchange, exchanges, "exchange")
    queues = {} if target in exchanges else {str(one["queue"]): one for one in client.queues()}
    if target not in exchanges:
        _require(target, [*queues, *(exchanges if target.startswith("x") else ())], "queue or exchange")
    found = [one for one in client.bindings(exchange) if target in (one.get("queue"), one.get("destination"))]
    bound = [str(one["pattern"]) for one in found]
    owner = {"owner": queues[target].get("owner")} if target in queues else {}
    return {
        "exchange": exchange,
        "target": target,
        **owner,
        "dry_run": True,
        "bound": bound,
        "new": [pattern for pattern in dict.fromkeys(patterns) if pattern not in bound],
        "patterns": list(patterns),
    }


def _require(name: str, known: Sequence[str], kind: str) -> None:
    if name not in known:
        raise RejectedError(f"there is no {kind} {name!r} that you may read{suggestion(name, known)}")


def past_of(plan: Document, past: Past, *, aws: bool, stage: str) -> "PastMessages":
    """Return the past messages that match the patterns of a plan."""
    from signalbox.aws.history.past_messages import Selection
    from signalbox.exchange.matching.regexes import pattern_regex
    from signalbox.exchange.model.patterns import Pattern

    regex = "|".join(pattern_regex(Pattern.stored(text)) for text in plan["patterns"])
    present = [pattern_regex(Pattern.stored(text)) for text in plan["bound"] if text not in plan["patterns"]]
    selection = Selection(plan["exchange"], regex, queue=plan["target"], present=present)
    return history_of(aws=aws, stage=stage).matching(selection, past.window)


def cost_of(plan: Document, found: "PastMessages") -> "Cost | None":
    """Return the monthly cost of the new copies; None for an exchange, whose bindings decide."""
    from signalbox.history.what_if.cost import monthly_cost

    return monthly_cost(found.new, ACTIONS, months=found.window.months) if "owner" in plan else None


def print_plan(plan: Document) -> None:
    """Print the effect of a binding."""
    owner = f" of {plan['owner']}" if plan.get("owner") else ""
    for pattern in plan["patterns"]:
        verb = "would be bound" if pattern in plan["new"] else "is bound already"
        print_line(f"{plan['exchange']} → {plan['target']}{owner}  {pattern!r}  {verb}")


def show(plan: Document, past: Past, found: "PastMessages", cost: "Cost | None", *, as_json: bool) -> None:
    """Print the past messages, what is new of them and the cost, unless as JSON; draw the picture."""
    what = ", ".join(map(repr, plan["patterns"]))
    new, total = found.new.messages, found.total.messages
    lines = [
        f"{new:,} of {total:,} would be new to {plan['target']}; it received the others, or its bindings match them"
    ]
    if "owner" not in plan:
        lines.append("each queue that is bound to it, with a pattern that matches, would get a copy")
    if cost is not None:
        lines.append(f"cost: {cost.sentence()} for the new copies, their events and the consumer's calls")
    lines = lines if found.total.messages else []
    if not as_json:
        print_messages(past, found, what)
        for line in lines:
            print_line(line)
    draw(
        past,
        title=f"Binding {plan['exchange']} → {plan['target']}",
        lines=[*sentences(past, found, what), *lines],
        figures=figures_of(found, cost),
        buckets=found.buckets,
        bars=("Topics with most messages", ((one.name, one.amount.messages) for one in found.topics)),
    )


def document(plan: Document, found: "PastMessages", cost: "Cost | None") -> dict[str, object]:
    """Return the plan, the past and the cost as a JSON object."""
    from signalbox.history.what_if.rate import Rate

    rate = Rate.of(found.buckets, found.window).document()
    priced = None if cost is None else cost.document()
    return {**plan, "past": {**found.document(), "rate": rate}, "cost": priced}
