"""The options of `signalbox exchange declare` for live exchanges."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

import typer

from signalbox.cli.exchange.stage import seconds
from signalbox.errors import RejectedError
from signalbox.exchange.model.records import OrderBy


@dataclass(frozen=True, slots=True)
class LiveOptions:
    """The options of a live exchange."""

    live: Annotated[
        bool | None, typer.Option("--live/--not-live", help="Make an ordered exchange live, or no longer live.")
    ] = None
    order_by: Annotated[OrderBy | None, typer.Option(help="Scope in which a live exchange keeps the order.")] = None
    anonymous: Annotated[
        str | None, typer.Option(help="User that clients without a secret join as; '' disables it.", metavar="NAME")
    ] = None
    keep: Annotated[
        int | None, typer.Option(help="Events to keep for each topic; 0 keeps all.", min=0, metavar="NUMBER")
    ] = None
    keep_for: Annotated[str | None, typer.Option(help="How long to keep events, such as 24h; never is no limit.")] = (
        None
    )
    rules: Annotated[
        list[str] | None,
        typer.Option(
            "--rule",
            help="Limits for topics with a prefix: PREFIX=NUMBER,TIME, such as logs.=100,1h; repeatable.",
        ),
    ] = None
    arvados: Annotated[
        bool | None,
        typer.Option(
            "--arvados/--no-arvados", help="Make the exchange the realm that clients of Arvados join, or no longer."
        ),
    ] = None
    arvados_api: Annotated[
        str | None,
        typer.Option(help="API of the Arvados cluster that verifies its own tokens; '' accepts none.", metavar="URL"),
    ] = None

    def fields(self, issuers: Sequence[object] | None) -> Mapping[str, object] | None:
        """Return the live fields of the command `declare_exchange`, or None without any of the options."""
        given: dict[str, object | None] = {
            "live": self.live,
            "order_by": self.order_by and self.order_by.value,
            "anonymous": self.anonymous,
            "retention": _retention(self.keep, self.keep_for, option="--keep-for") or None,
            "rules": dict(map(_rule, self.rules)) if self.rules else None,
            "issuers": issuers,
            "arvados": self.arvados,
            "arvados_api": self.arvados_api,
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
