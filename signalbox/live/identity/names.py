"""The names of token users and groups, as texts that keys, grants and patterns can hold."""

import string
from collections.abc import Iterable
from urllib.parse import quote

from signalbox.exchange.model.issuers import Issuer

MAXIMUM_NAME_LENGTH = 128
# Without `{`, `}`, `#`, `~` and `%`: those have a meaning in patterns, keys and in this encoding.
PLAIN = frozenset(string.ascii_letters + string.digits + "-._@:")


def encoded_name(text: str) -> str:
    """Return a name with every character but letters, digits and `-._@:` percent-encoded; different texts differ.

    A leading `@` is encoded, too: it marks groups.
    """
    encoded = "".join(character if character in PLAIN else _encoded(character) for character in text)
    return f"%40{encoded[1:]}" if encoded.startswith("@") else encoded


def authid_of(name: str, issuer: Issuer, realm_issuers: Iterable[Issuer]) -> str | None:
    """Return the authid of a name that an issuer gives: `NAME` or `NAME@LABEL`; None if no user may have it.

    A name of the issuer without a label may not end like the names of one with a label.
    """
    encoded = encoded_name(name)
    authid = f"{encoded}@{issuer.label}" if issuer.label else encoded
    labels = {one.label for one in realm_issuers if one.label}
    is_foreign = not issuer.label and "@" in encoded and encoded.rpartition("@")[2] in labels
    return None if not encoded or is_foreign or len(authid) > MAXIMUM_NAME_LENGTH else authid


def _encoded(character: str) -> str:
    # JSON may contain a lone surrogate, which strict UTF-8 cannot encode. `quote` leaves `~` as it is.
    return "%7E" if character == "~" else quote(character, safe="", errors="surrogatepass")
