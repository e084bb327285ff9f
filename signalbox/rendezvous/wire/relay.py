"""Which relays a proxy is willing to connect to."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RelayPattern:
    """A pattern of host names: the end of a name, or after a leading `^` the whole name."""

    name: str
    is_exact: bool

    @classmethod
    def parse(cls, text: str) -> "RelayPattern":
        """Return the pattern; each text is one. A trailing `$` is decoration."""
        rule = text.removesuffix("$")
        return cls(rule.removeprefix("^"), rule.startswith("^"))

    def accepts(self, hostname: str) -> bool:
        """Tell whether a host name matches."""
        return hostname == self.name if self.is_exact else hostname.endswith(self.name)

    def is_superset_of(self, other: "RelayPattern") -> bool:
        """Tell whether whatever the other one accepts, this one accepts too."""
        if self.is_exact:
            return other.is_exact and other.name == self.name
        return other.name.endswith(self.name)


def is_relay_allowed(proxy_pattern: str | None, allowed: RelayPattern) -> bool:
    """Tell whether a proxy goes wherever it may be sent; one too old to say so never does."""
    return proxy_pattern is not None and RelayPattern.parse(proxy_pattern).is_superset_of(allowed)
