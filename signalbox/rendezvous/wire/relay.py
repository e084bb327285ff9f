"""Relay patterns: the relay host names that a proxy accepts and that the broker allows."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RelayPattern:
    """A pattern of host names: a suffix, or the whole name after a leading `^`."""

    name: str
    is_exact: bool

    @classmethod
    def parse(cls, text: str) -> "RelayPattern":
        """Return the pattern in a text; every text is valid. A trailing `$` has no effect."""
        rule = text.removesuffix("$")
        return cls(rule.removeprefix("^"), rule.startswith("^"))

    def accepts(self, hostname: str) -> bool:
        """Return whether a host name matches."""
        return hostname == self.name if self.is_exact else hostname.endswith(self.name)

    def is_superset_of(self, other: "RelayPattern") -> bool:
        """Return whether this pattern accepts every host name that `other` accepts."""
        if self.is_exact:
            return other.is_exact and other.name == self.name
        return other.name.endswith(self.name)


def is_relay_allowed(proxy_pattern: str | None, allowed: RelayPattern) -> bool:
    """Return whether a proxy accepts every allowed relay; False for a proxy without a pattern."""
    return proxy_pattern is not None and RelayPattern.parse(proxy_pattern).is_superset_of(allowed)
