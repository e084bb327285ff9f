"""The names of token users: those that their issuers give, in the form of principals."""

from collections.abc import Iterable

from signalbox.exchange.model.issuers import Issuer
from signalbox.live.rights.principals import MAXIMUM_LENGTH, canonical_name


def authid_of(name: str, issuer: Issuer, realm_issuers: Iterable[Issuer]) -> str | None:
    """Return the authid of a name that an issuer gives: `NAME` or `NAME@LABEL`; None if no user may have it.

    A name of the issuer without a label may not end like the names of one with a label.
    """
    canonical = canonical_name(name)
    authid = f"{canonical}@{issuer.label}" if issuer.label else canonical
    labels = {one.label for one in realm_issuers if one.label}
    is_foreign = not issuer.label and "@" in canonical and canonical.rpartition("@")[2] in labels
    return None if not canonical or is_foreign or len(authid) > MAXIMUM_LENGTH else authid
