"""A target's variables on their way to temporary queues and back; whatever else they hold stays as it is."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from signalbox.queues import QueueName
from signalbox.splitting.consumers.environment import Resolution, Resolver, UnresolvedQueue
from signalbox.splitting.consumers.registry import NameSource
from signalbox.splitting.consumers.switching import combined
from signalbox.splitting.model.world import TargetState

Names = Mapping[QueueName, QueueName]


@dataclass(frozen=True, slots=True)
class Variables:
    """The variables of a target that hold queues' names, by what its registry says of them.

    `names` are the temporary names by the originals; what was noted are the values before, None for a variable that
    was not there.
    """

    resolver: Resolver
    sources: tuple[NameSource, ...]

    def switched(self, environment: Mapping[str, str], names: Names) -> dict[str, str]:
        """Return the whole environment with temporary names. Raises `UnresolvedQueue`."""
        changed = dict(environment)
        for source in self.sources:
            for found in self.resolver.resolve(source, changed):
                changed[found.variable] = self._renamed(source, found, names)
        return changed

    def noted(self, environment: Mapping[str, str], names: Names) -> dict[str, str | None]:
        """Return the values that a switch changes, as they are before it. Raises `UnresolvedQueue`."""
        after = self.switched(environment, names)
        return {name: environment.get(name) for name in after if after[name] != environment.get(name)}

    def before(self, environment: Mapping[str, str], noted: Mapping[str, str | None]) -> dict[str, str]:
        """Return the environment as it was before a switch."""
        overlaid = {**environment, **noted}
        return {name: value for name, value in overlaid.items() if value is not None}

    def restored(self, environment: Mapping[str, str], noted: Mapping[str, str | None], names: Names) -> dict[str, str]:
        """Return the whole environment with the original names.

        What a switch made becomes exactly what was noted. What somebody deployed since then stays, but for temporary
        names in it.
        """
        made = self.switched(self.before(environment, noted), names) if noted else {}
        are_ours = {name for name in noted if environment.get(name) == made.get(name)}
        changed = self.before(environment, {name: noted[name] for name in are_ours})
        back = {temporary: original for original, temporary in names.items()}
        for source in self.sources:
            for found in self._found(source, changed):
                if not found.is_added and not back.keys().isdisjoint(found.queue_names):
                    changed[found.variable] = self._renamed(source, found, back)
        return changed

    def state(self, environment: Mapping[str, str], names: Names) -> TargetState:
        """Return from where whoever has this environment reads; what names no temporary queue counts as original."""
        return combined(self._states(environment, frozenset(names.values())))

    def _states(self, environment: Mapping[str, str], temporary: frozenset[QueueName]) -> Iterator[TargetState]:
        for source in self.sources:
            found = list(self._found(source, environment))
            if not found:
                yield TargetState.ORIGINAL
            for name in (name for one in found for name in one.queue_names):
                yield TargetState.TEMPORARY if name in temporary else TargetState.ORIGINAL

    def _found(self, source: NameSource, environment: Mapping[str, str]) -> tuple[Resolution, ...]:
        try:
            return self.resolver.resolve(source, environment)
        except UnresolvedQueue:
            return ()  # somebody deployed the target without what the registry says

    def _renamed(self, source: NameSource, found: Resolution, names: Names) -> str:
        # A name without a counterpart changes nothing, and so its JSON keeps its spaces too.
        return (
            found.value if names.keys().isdisjoint(found.queue_names) else self.resolver.replaced(source, found, names)
        )
