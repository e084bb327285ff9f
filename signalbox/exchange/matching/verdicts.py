"""The verdicts of bindings on a routing key: which of them match it, for people who ask why."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from signalbox.exchange.matching.trie import BindingTrie
from signalbox.exchange.model.patterns import Pattern
from signalbox.exchange.model.topics import RoutingKey


@dataclass(frozen=True, slots=True)
class BindingVerdict:
    """A binding from an exchange to a queue or another exchange, and whether it matches."""

    exchange: str
    target: str
    pattern: str
    is_exchange: bool
    matches: bool


def binding_verdicts(
    bindings_of: Callable[[str], Iterable[tuple[str, str, bool]]], exchanges: Iterable[str], key: RoutingKey
) -> list[BindingVerdict]:
    """Return the verdicts of bindings on a key: those of `exchanges` and of the exchanges that matching ones lead to.

    `bindings_of` returns an exchange's bindings as target, pattern and whether the target is an exchange.
    """
    waiting, seen, verdicts = list(exchanges), set[str](), list[BindingVerdict]()
    while waiting:
        exchange = waiting.pop(0)
        if exchange in seen:
            continue
        seen.add(exchange)
        for target, pattern, is_exchange in bindings_of(exchange):
            verdict = BindingVerdict(exchange, target, pattern, is_exchange, _matches(pattern, key))
            verdicts.append(verdict)
            waiting += [target] if is_exchange and verdict.matches else []
    return verdicts


def _matches(pattern: str, key: RoutingKey) -> bool:
    trie: BindingTrie[str] = BindingTrie()
    trie.add(Pattern.stored(pattern), pattern)
    return bool(trie.matching(key))
