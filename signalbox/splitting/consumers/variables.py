"""The switch of a target's variables to temporary queues and back; other contents stay unchanged."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from signalbox.queues import QueueName
from signalbox.splitting.consumers.environment import Resolution, Resolver, UnresolvedQueue
from signalbox.splitting.consumers.registry import NameSource
from signalbox.splitting.model.observed_state import TargetState, combined_state

Names = Mapping[QueueName, QueueName]


@dataclass(frozen=True, slots=True)
class Variables:
    """The variables of a target that contain queue names, by its registry.

    `names` maps originals to temporary queues. Saved values are those before the switch; None is a variable that did
    not exist.
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
        """Return the values before the switch of the variables that it changes. Raises `UnresolvedQueue`."""
        after = self.switched(environment, names)
        return {name: environment.get(name) for name in after if after[name] != environment.get(name)}

    def before(self, environment: Mapping[str, str], noted: Mapping[str, str | None]) -> dict[str, str]:
        """Return the environment before a switch."""
        overlaid = {**environment, **noted}
        return {name: value for name, value in overlaid.items() if value is not None}

    def restored(self, environment: Mapping[str, str], noted: Mapping[str, str | None], names: Names) -> dict[str, str]:
        """Return the whole environment with the original names.

        Values that a switch wrote become the saved ones. Values that were deployed since then stay, except for
        temporary names in them.
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
        """Return the state of a target with this environment; without temporary names it is `ORIGINAL`."""
        return combined_state(self._states(environment, frozenset(names.values())))

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
            return ()  # the target was deployed without the variables that the registry names

    def _renamed(self, source: NameSource, found: Resolution, names: Names) -> str:
        # A value without replaced names stays as it is, so that its JSON keeps its whitespace.
        return (
            found.value if names.keys().isdisjoint(found.queue_names) else self.resolver.replaced(source, found, names)
        )
