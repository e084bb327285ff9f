"""A patch of MiniStack: the objects that it replaces, and the guard that refuses a MiniStack that has changed."""

import hashlib
import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pkgutil import resolve_name
from typing import Any

DIGEST_LENGTH = 16


class MiniStackChangedError(Exception):
    """Raised when the installed MiniStack is not the one that a patch was written for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Patch:
    """Replacements of MiniStack's objects at run time.

    Objects are named as entry points are: `package.module:attribute` or `package.module:Class.attribute`.
    """

    module: str
    """Name of the patch's own module, for error messages."""
    version: str
    """Version of MiniStack that the patch was written for."""
    sources: Mapping[str, str | None]
    """Digests of the sources that the patch replaces or relies on, by the names of their objects.

    None for an object that has no source: it only has to exist.
    """
    replacements: Callable[[], Mapping[str, object]]
    """Builds the new objects, by the names of those that they replace."""

    def mismatches(self) -> list[str]:
        """Return the differences between the installed MiniStack and the one that this patch was written for."""
        installed = version("ministack")
        found = [] if installed == self.version else [f"version {installed} is installed"]
        return found + [text for name, expected in self.sources.items() if (text := _mismatch(name, expected))]

    def apply(self) -> None:
        """Replace the objects."""
        for name, replacement in self.replacements().items():
            owner, _, attribute = name.replace(":", ".").rpartition(".")
            setattr(_resolved(owner, module=name.partition(":")[0]), attribute, replacement)


def apply_all(patches: Iterable[Patch]) -> None:
    """Check and apply patches in order.

    Raises `MiniStackChangedError`, which names the files of all patches that do not fit.
    """
    problems: list[str] = []
    for patch in patches:
        if mismatches := patch.mismatches():
            problems.append(_problem(patch, mismatches))
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


def _resolved(owner: str, *, module: str) -> object:
    attributes = owner.removeprefix(module).removeprefix(".")
    return resolve_name(f"{module}:{attributes}" if attributes else module)


def _mismatch(name: str, expected: str | None) -> str | None:
    try:
        found = original(name)
    except (ImportError, AttributeError):
        return f"{name} does not exist"
    actual = None if expected is None else digest(inspect.getsource(found))
    return None if actual == expected else f"the source of {name} has changed (its digest is {actual}, not {expected})"


def _problem(patch: Patch, mismatches: list[str]) -> str:
    file = patch.module.replace(".", "/") + ".py"
    return (
        f"{file} patches MiniStack {patch.version}, but {'; '.join(mismatches)}. "
        "Compare the sources, then adapt the patch or delete it."
    )
