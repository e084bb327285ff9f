"""Identities of file contents: checksums, and Sarracenia's methods without a checksum."""

import hashlib
from base64 import b64encode
from collections.abc import Iterable
from dataclasses import dataclass

from signalbox.errors import RejectedError

CHECKSUMS = ("sha512", "md5")
COMPUTE_ON_DOWNLOAD = "cod"
RANDOM = "random"
ARBITRARY = "arbitrary"
NONE = "none"


class InvalidIdentityMethod(RejectedError):
    """Raised for an identity method that Sarracenia does not have."""


@dataclass(frozen=True, slots=True)
class Identity:
    """An identity method and its value; the value of a checksum is its digest in base64."""

    method: str
    value: str


@dataclass(frozen=True, slots=True)
class IdentityMethod:
    """A method to compute identities: a checksum, or a value that does not depend on the content."""

    name: str = "sha512"
    value: str = ""

    @classmethod
    def parse(cls, text: str) -> "IdentityMethod":
        """Parse a method such as `sha512`, `cod,sha512` or `arbitrary,VALUE`. Raises `InvalidIdentityMethod`."""
        name, comma, value = text.partition(",")
        plain = name in (*CHECKSUMS, RANDOM, NONE) and not comma
        if plain or (name == COMPUTE_ON_DOWNLOAD and value in CHECKSUMS) or (name == ARBITRARY and value):
            return cls(name, value)
        raise InvalidIdentityMethod(
            f"identity method {text[:80]!r}; known are sha512, md5, cod,sha512, cod,md5, random, arbitrary,VALUE, none"
        )

    def identity(self, chunks: Iterable[bytes], *, random: int) -> Identity | None:
        """Return the identity of a content, or None for `none`; `random` is an integer from 0 to 9999."""
        if self.name == NONE:
            return None
        if self.name in CHECKSUMS:
            return checksum(self.name, chunks)
        return Identity(self.name, f"{random:04}" if self.name == RANDOM else self.value)


def checksum(method: str, chunks: Iterable[bytes]) -> Identity:
    """Return the checksum of a content by one of `CHECKSUMS`."""
    digest = hashlib.new(method, usedforsecurity=False)
    for chunk in chunks:
        digest.update(chunk)
    return Identity(method, b64encode(digest.digest()).decode())
