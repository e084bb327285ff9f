"""What tells one content from another: checksums, and the methods that stand in for one."""

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
    """Raised when an identity method is none that Sarracenia knows."""


@dataclass(frozen=True, slots=True)
class Identity:
    """A method and its value: of a checksum, its digest in base64."""

    method: str
    value: str


@dataclass(frozen=True, slots=True)
class IdentityMethod:
    """How the identity of files is made: by a checksum, or with a value that does not depend on the content."""

    name: str = "sha512"
    value: str = ""

    @classmethod
    def parse(cls, text: str) -> "IdentityMethod":
        """Return the method in `sha512`, `md5`, `cod,sha512`, `random`, `arbitrary,VALUE` or `none`."""
        name, comma, value = text.partition(",")
        plain = name in (*CHECKSUMS, RANDOM, NONE) and not comma
        if plain or (name == COMPUTE_ON_DOWNLOAD and value in CHECKSUMS) or (name == ARBITRARY and value):
            return cls(name, value)
        raise InvalidIdentityMethod(
            f"identity method {text[:80]!r}; known are sha512, md5, cod,sha512, cod,md5, random, arbitrary,VALUE, none"
        )

    def identity(self, chunks: Iterable[bytes], *, random: int) -> Identity | None:
        """Return the identity of a content; `random` is one of 0 to 9999."""
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
