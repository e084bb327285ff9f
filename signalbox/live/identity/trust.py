"""The settings of a realm that a token was verified by: its session lasts while they are the realm's."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import astuple, replace

from signalbox.exchange.model.issuers import Issuer
from signalbox.exchange.model.records import LiveSettings
from signalbox.live.identity.tokens import CLUSTER, TokenIdentity


def trust_of(issuer: Issuer, realm_issuers: Sequence[Issuer]) -> str:
    """Return a digest of all settings that decide whether a token of an issuer is accepted, and who its user is."""
    # A name without a label must not end like those of the issuers with labels; the origins are for signing in only.
    others = [] if issuer.label else sorted(one.label for one in realm_issuers)
    deciding = json.dumps([astuple(replace(issuer, origins=())), others])
    return hashlib.sha256(deciding.encode()).hexdigest()


def is_trusted(token: TokenIdentity, live: LiveSettings) -> bool:
    """Return whether a realm still has the settings by which a token was verified."""
    if token.issuer == CLUSTER:
        return token.trust == live.arvados_api != ""
    return any(one.url == token.issuer and token.trust == trust_of(one, live.issuers) for one in live.issuers)
