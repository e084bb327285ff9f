"""Relay patterns: the relay host names that a proxy accepts and that the broker allows."""


def is_relay_allowed(proxy_pattern: str | None, allowed: str) -> bool:
    """Return whether a proxy accepts every allowed relay; False for a proxy without a pattern.

    A pattern is a suffix of host names or, after a leading `^`, a whole name; a trailing `$` has no effect.
    """
    if proxy_pattern is None:
        return False
    pattern, rule = proxy_pattern.removesuffix("$"), allowed.removesuffix("$")
    return pattern == rule if pattern.startswith("^") else rule.removeprefix("^").endswith(pattern)
