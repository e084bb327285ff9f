"""The options of `signalbox exchange declare` for identity providers."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from signalbox.cli.exchange.stage import seconds
from signalbox.cli.shared.files import read_json
from signalbox.errors import RejectedError

option = partial(typer.Option, rich_help_panel="Sign-in with an identity provider")


@dataclass(frozen=True, slots=True)
class IssuerOptions:
    """The options that name the issuers of a realm."""

    issuer: Annotated[
        str | None,
        option(
            help="Issuer whose users may join by their tokens; it replaces all declared ones, and '' removes them.",
            metavar="URL",
        ),
    ] = None
    audience: Annotated[str | None, option(help="Audience that tokens must be for.", metavar="ID")] = None
    issuer_label: Annotated[
        str | None, option(help="Label of the issuer, whose users are NAME@LABEL.", metavar="LABEL")
    ] = None
    name_claim: Annotated[str | None, option(help="Claim with the user's name; by default sub.", metavar="CLAIM")] = (
        None
    )
    role_claim: Annotated[
        str | None, option(help="Claim with the user's role; default: every user is a subscriber.", metavar="CLAIM")
    ] = None
    groups_claim: Annotated[
        str | None, option(help="Claim with the user's groups; by default groups.", metavar="CLAIM")
    ] = None
    clock_skew: Annotated[
        str | None,
        option(help="How much the issuer's clock may differ, such as 30s; by default 60s.", metavar="TIME"),
    ] = None
    client_id: Annotated[
        str | None,
        option(help="Client as which the page and the command sign in; by default the audience.", metavar="ID"),
    ] = None
    issuer_origin: Annotated[
        list[str] | None,
        option(help="Other origin than the issuer's, where some of its endpoints are; repeatable.", metavar="URL"),
    ] = None
    issuers: Annotated[
        Path | None,
        option(help="JSON list of several issuers, with the fields of the control message.", metavar="FILE"),
    ] = None

    def fields(self) -> Sequence[object] | None:
        """Return the field `issuers` of the command `declare_exchange`, or None without any of the options."""
        settings: dict[str, object | None] = {
            "audience": self.audience,
            "label": self.issuer_label,
            "name_claim": self.name_claim,
            "role_claim": self.role_claim,
            "groups_claim": self.groups_claim,
            "skew_seconds": None if self.clock_skew is None else seconds(self.clock_skew, "--clock-skew"),
            "client_id": self.client_id,
            "origins": self.issuer_origin or None,
        }
        given = {name: value for name, value in settings.items() if value is not None}
        if not self.issuer and given:
            raise RejectedError("--issuer: name the issuer that --audience and the other options are for")
        if self.issuers is not None:
            if self.issuer is not None:
                raise RejectedError("--issuers: give either a file or --issuer")
            return _listed(self.issuers)
        if self.issuer is None:
            return None
        return [{"url": self.issuer, **given}] if self.issuer else []


def _listed(file: Path) -> Sequence[object]:
    issuers = read_json(file)
    if not isinstance(issuers, list):
        raise RejectedError(f"--issuers: expected a JSON list of issuers in {file}")
    return issuers
