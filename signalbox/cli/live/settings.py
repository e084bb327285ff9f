"""What `signalbox exchange declare` says of an exchange that connections may join."""

from collections.abc import Mapping, Sequence
from typing import Annotated

import typer

from signalbox.cli.exchange.stage import seconds
from signalbox.errors import RejectedError
from signalbox.exchange.model.records import OrderBy

Live = Annotated[
    bool | None, typer.Option("--live/--not-live", help="Let connections join an ordered exchange, or no more.")
]
Order = Annotated[OrderBy | None, typer.Option("--order-by", help="What keeps its order on a live exchange.")]
Anonymous = Annotated[
    str | None, typer.Option(help="User as whom anybody may join; '' for nobody any more.", metavar="NAME")
]
Keep = Annotated[int | None, typer.Option(help="Events of a topic to keep; 0 is all.", min=0, metavar="NUMBER")]
KeepFor = Annotated[str | None, typer.Option(help="How long to keep them, such as 24h, or never to forget them.")]
Rules = Annotated[
    list[str] | None,
    typer.Option(
        "--rule",
        help="The same for topics that begin so: BEGINNING=NUMBER,TIME, such as logs.=100,1h; repeatable.",
    ),
]


def live_fields(
    live: bool | None,  # noqa: FBT001 - as the command has it
    order_by: OrderBy | None,
    *,
    anonymous: str | None,
    keep: int | None,
    keep_for: str | None,
    rules: Sequence[str] | None,
) -> Mapping[str, object] | None:
    """Return the fields of the command `declare_exchange` that say so; None if nothing is said."""
    retention = _retention(keep, keep_for, option="--keep-for")
    said: dict[str, object | None] = {
        "live": live,
        "order_by": order_by and order_by.value,
        "anonymous": anonymous,
        "retention": retention or None,
        "rules": dict(map(_rule, rules)) if rules else None,
    }
    return {name: value for name, value in said.items() if value is not None} or None


def _rule(text: str) -> tuple[str, Mapping[str, int]]:
    prefix, is_rule, limits = text.rpartition("=")
    count, _, time = limits.partition(",")
    if not is_rule or (count and not (count.isascii() and count.isdigit())):
        raise RejectedError(f"--rule: expected BEGINNING=NUMBER,TIME, such as logs.=100,1h, not {text!r}")
    return prefix, _retention(int(count) if count else None, time or None, option="--rule")


def _retention(count: int | None, time: str | None, *, option: str) -> Mapping[str, int]:
    said = {"count": count, "age_seconds": None if time is None else seconds(time, option)}
    return {name: number for name, number in said.items() if number is not None}
