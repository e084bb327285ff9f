"""The options of `signalbox exchange declare` for live exchanges."""

from collections.abc import Mapping, Sequence
from typing import Annotated

import typer

from signalbox.cli.exchange.stage import seconds
from signalbox.errors import RejectedError
from signalbox.exchange.model.records import OrderBy

Live = Annotated[
    bool | None, typer.Option("--live/--not-live", help="Make an ordered exchange live, or no longer live.")
]
Order = Annotated[OrderBy | None, typer.Option("--order-by", help="Scope in which a live exchange keeps the order.")]
Anonymous = Annotated[
    str | None, typer.Option(help="User that clients without a secret join as; '' disables it.", metavar="NAME")
]
Keep = Annotated[int | None, typer.Option(help="Events to keep for each topic; 0 keeps all.", min=0, metavar="NUMBER")]
KeepFor = Annotated[str | None, typer.Option(help="How long to keep events, such as 24h; never is no limit.")]
Rules = Annotated[
    list[str] | None,
    typer.Option(
        "--rule",
        help="Limits for topics with a prefix: PREFIX=NUMBER,TIME, such as logs.=100,1h; repeatable.",
    ),
]

Arvados = Annotated[
    bool | None,
    typer.Option(
        "--arvados/--no-arvados", help="Make the exchange the realm that clients of Arvados join, or no longer."
    ),
]
ArvadosApi = Annotated[
    str | None,
    typer.Option(help="API of the Arvados cluster that verifies its own tokens; '' accepts none.", metavar="URL"),
]


def live_fields(
    live: bool | None,  # noqa: FBT001 - an option of the command
    order_by: OrderBy | None,
    *,
    anonymous: str | None,
    keep: int | None,
    keep_for: str | None,
    rules: Sequence[str] | None,
    issuers: Sequence[object] | None,
    arvados: bool | None,
    arvados_api: str | None,
) -> Mapping[str, object] | None:
    """Return the live fields of the command `declare_exchange`, or None without any of the options."""
    retention = _retention(keep, keep_for, option="--keep-for")
    given: dict[str, object | None] = {
        "live": live,
        "order_by": order_by and order_by.value,
        "anonymous": anonymous,
        "retention": retention or None,
        "rules": dict(map(_rule, rules)) if rules else None,
        "issuers": issuers,
        "arvados": arvados,
        "arvados_api": arvados_api,
    }
    return {name: value for name, value in given.items() if value is not None} or None


def _rule(text: str) -> tuple[str, Mapping[str, int]]:
    prefix, is_rule, limits = text.rpartition("=")
    count, _, time = limits.partition(",")
    if not is_rule or (count and not (count.isascii() and count.isdigit())):
        raise RejectedError(f"--rule: expected PREFIX=NUMBER,TIME, such as logs.=100,1h, not {text!r}")
    return prefix, _retention(int(count) if count else None, time or None, option="--rule")


def _retention(count: int | None, time: str | None, *, option: str) -> Mapping[str, int]:
    given = {"count": count, "age_seconds": None if time is None else seconds(time, option)}
    return {name: number for name, number in given.items() if number is not None}
