"""A patch of MiniStack: the objects that it replaces, and the guard that refuses a MiniStack that has changed."""

import hashlib
import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pkgutil import resolve_name
from typing import Any

DIGEST_LENGTH = 16
LAST_NAME = re.compile(r"[.:](?=\w+$)")


class MiniStackChangedError(Exception):
    """Raised when the installed MiniStack is not the one that a patch was written for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Patch:
    """Replacements of MiniStack's objects at run time.

    Objects are named as entry points are: `package.module:attribute` or `package.module:Class.attribute`.
    """

    sources: Mapping[str, str]
    """Digests of the sources that the patch replaces or relies on, by the names of their objects."""
    replacements: Callable[[], Mapping[str, object]]
    """Builds the new objects, by the names of those that they replace."""

    @property
    def file(self) -> str:
        """The path of the patch's own module."""
        return self.replacements.__module__.replace(".", "/") + ".py"

    def mismatches(self) -> list[str]:
        """Return the differences between the installed MiniStack and the one that this patch was written for."""
        return [text for name, expected in self.sources.items() if (text := _mismatch(name, expected))]

    def apply(self) -> None:
        """Replace the objects; a function names what it wraps, so that later patches compare the source of that."""
        for name, replacement in self.replacements().items():
            owner, attribute = LAST_NAME.split(name)
            if inspect.isfunction(replacement):
                vars(replacement)["__wrapped__"] = original(name)
            setattr(resolve_name(owner), attribute, replacement)


def apply_all(patches: Iterable[Patch]) -> None:
    """Check and apply patches in order.

    Raises `MiniStackChangedError`, which names the files of all patches that do not fit.
    """
    problems: list[str] = []
    for patch in patches:
        if mismatches := patch.mismatches():
            problems.append(
                f"{patch.file}: {'; '.join(mismatches)}. Compare the sources, then adapt or delete the patch."
            )
        else:
            patch.apply()
    if problems:
        raise MiniStackChangedError("\n".join(problems))


def digest(source: str) -> str:
    """Return the digest of a source: the first 16 hexadecimal digits of its SHA-256."""
    return hashlib.sha256(source.encode()).hexdigest()[:DIGEST_LENGTH]


def original(name: str) -> Any:  # noqa: ANN401 - MiniStack has no types
    """Return the object of MiniStack with this name."""
    return resolve_name(name)


def _mismatch(name: str, expected: str) -> str | None:
    try:
        actual = digest(inspect.getsource(original(name)))
    except (ImportError, AttributeError):
        return f"{name} does not exist"
    return None if actual == expected else f"the source of {name} has changed (its digest is {actual}, not {expected})"
