"""The JSON document of a token's identity, in sessions' records and in calls that are passed on."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from signalbox.live.identity.tokens import TokenIdentity
from signalbox.sarracenia.rights.permissions import Role

Document = Mapping[str, Any]


def token_document(token: TokenIdentity) -> dict[str, object]:
    """Return the document of a token's identity."""
    return {
        "issuer": token.issuer,
        "role": token.role.value,
        "groups": list(token.groups),
        "expires_at": token.expires_at.isoformat(),
        "skew_seconds": token.skew_seconds,
    }


def token_of(document: Document) -> TokenIdentity:
    """Return the token's identity of a document."""
    return TokenIdentity(
        issuer=document["issuer"],
        role=Role(document["role"]),
        groups=tuple(document["groups"]),
        expires_at=datetime.fromisoformat(document["expires_at"]),
        skew_seconds=document["skew_seconds"],
    )
