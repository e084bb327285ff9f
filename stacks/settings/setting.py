"""The definition of a deployment setting: a dataclass field with its unit, limits and meaning."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import TypeVar, get_type_hints

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Setting:
    """One deployment setting, for the parser and the documentation."""

    name: str
    kind: type
    optional: bool
    default: object
    unit: str
    description: str
    minimum: int | None = None
    maximum: int | None = None
    pattern: str | None = None
    choices: tuple[int, ...] | tuple[str, ...] | None = None
    form: str | None = None


def setting(
    default: T,
    description: str,
    *,
    unit: str = "",
    minimum: int | None = None,
    maximum: int | None = None,
    pattern: str | None = None,
    choices: tuple[int, ...] | tuple[str, ...] | None = None,
    form: str | None = None,
) -> T:
    """Return the dataclass field of a setting.

    `choices` are the numbers, or the words of a comma-separated list, and `form` is the pattern in words.
    """
    limits = {"minimum": minimum, "maximum": maximum, "pattern": pattern, "choices": choices, "form": form}
    metadata: Mapping[str, object] = MappingProxyType({"description": description, "unit": unit, **limits})
    return field(default=default, metadata=metadata)


def number(default: int, limits: tuple[int, int], unit: str, description: str) -> int:
    """Return the dataclass field of a setting that is a number within limits."""
    return setting(default, description, unit=unit, minimum=limits[0], maximum=limits[1])


def listed(pattern: str) -> str:
    """Return the pattern of a comma-separated list of matches."""
    return f"(?:{pattern})(?:,(?:{pattern}))*"


def parts(text: str | None) -> tuple[str, ...]:
    """Return the entries of a comma-separated list."""
    return tuple(text.split(",")) if text else ()


def settings_of(config: type) -> tuple[Setting, ...]:
    """Return all settings of a dataclass in the order of their definition."""
    hints = get_type_hints(config)
    return tuple(
        Setting(
            name=f.name, kind=_kind(hints[f.name]), optional=_optional(hints[f.name]), default=f.default, **f.metadata
        )
        for f in fields(config)
    )


def _kind(hint: object) -> type:
    alternatives = [kind for kind in getattr(hint, "__args__", (hint,)) if kind is not type(None)]
    (kind,) = alternatives
    if not isinstance(kind, type):
        raise TypeError(f"a setting has one plain type, not {hint!r}")
    return kind


def _optional(hint: object) -> bool:
    return type(None) in getattr(hint, "__args__", ())
