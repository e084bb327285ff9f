"""Environment variables of a function; `stacks/` writes the same names."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, slots=True)
class Settings:
    """A function's environment variables; a variable that the stack does not set raises `KeyError`."""

    variables: Mapping[str, str]

    def text(self, name: str) -> str:
        """Return a variable as text."""
        return self.variables[name]

    def number(self, name: str) -> int:
        """Return a variable as a whole number."""
        return int(self.variables[name])

    def seconds(self, name: str) -> timedelta:
        """Return a variable, in seconds, as a duration."""
        return timedelta(seconds=float(self.variables[name]))
