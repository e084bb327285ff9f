"""The options of `signalbox exchange declare` for identity providers."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from signalbox.cli.exchange.stage import seconds
from signalbox.cli.shared.files import read_json
from signalbox.errors import RejectedError

PANEL = "Sign-in with an identity provider"

IssuerUrl = Annotated[
    str | None,
    typer.Option(
        "--issuer",
        help="Issuer whose users may join by their tokens, instead of those declared before; '' removes them.",
        metavar="URL",
        rich_help_panel=PANEL,
    ),
]
Audience = Annotated[
    str | None, typer.Option(help="Audience that tokens must be for.", metavar="ID", rich_help_panel=PANEL)
]
Label = Annotated[
    str | None,
    typer.Option(
        "--issuer-label",
        help="Label of the issuer, whose users are NAME@LABEL.",
        metavar="LABEL",
        rich_help_panel=PANEL,
    ),
]
NameClaim = Annotated[
    str | None, typer.Option(help="Claim with the user's name; by default sub.", metavar="CLAIM", rich_help_panel=PANEL)
]
RoleClaim = Annotated[
    str | None,
    typer.Option(
        help="Claim with the user's role; default: every user is a subscriber.", metavar="CLAIM", rich_help_panel=PANEL
    ),
]
GroupsClaim = Annotated[
    str | None,
    typer.Option(help="Claim with the user's groups; by default groups.", metavar="CLAIM", rich_help_panel=PANEL),
]
ClockSkew = Annotated[
    str | None,
    typer.Option(
        help="How much the issuer's clock may differ, such as 30s; by default 60s.",
        metavar="TIME",
        rich_help_panel=PANEL,
    ),
]
ClientId = Annotated[
    str | None,
    typer.Option(
        help="Client as which the page and the command sign in; by default the audience.",
        metavar="ID",
        rich_help_panel=PANEL,
    ),
]
Origins = Annotated[
    list[str] | None,
    typer.Option(
        "--issuer-origin",
        help="Origin of the issuer's endpoints that are not on its own; repeatable.",
        metavar="URL",
        rich_help_panel=PANEL,
    ),
]
Issuers = Annotated[
    Path | None,
    typer.Option(
        help="JSON list of several issuers, with the fields of the control message.",
        metavar="FILE",
        rich_help_panel=PANEL,
    ),
]


def issuer_fields(
    file: Path | None,
    *,
    url: str | None,
    audience: str | None,
    label: str | None,
    name_claim: str | None,
    role_claim: str | None,
    groups_claim: str | None,
    clock_skew: str | None,
    client_id: str | None,
    origins: Sequence[str] | None,
) -> Sequence[object] | None:
    """Return the field `issuers` of the command `declare_exchange`, or None without any of the options."""
    settings: dict[str, object | None] = {
        "audience": audience,
        "label": label,
        "name_claim": name_claim,
        "role_claim": role_claim,
        "groups_claim": groups_claim,
        "skew_seconds": None if clock_skew is None else seconds(clock_skew, "--clock-skew"),
        "client_id": client_id,
        "origins": origins or None,
    }
    given = {name: value for name, value in settings.items() if value is not None}
    if not url and given:
        raise RejectedError("--issuer: name the issuer that --audience and the other options are for")
    if file is not None:
        if url is not None:
            raise RejectedError("--issuers: give either a file or --issuer")
        return _listed(file)
    if url is None:
        return None
    return [{"url": url, **given}] if url else []


def _listed(file: Path) -> Sequence[object]:
    issuers = read_json(file)
    if not isinstance(issuers, list):
        raise RejectedError(f"--issuers: expected a JSON list of issuers in {file}")
    return issuers
