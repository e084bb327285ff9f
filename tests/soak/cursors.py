"""A cursor that checks what it hides from the application."""

from dataclasses import dataclass, field

from signalbox.clients.live.cursor import PatternCursor, ReceivedEvent
from signalbox.live.wamp.messages import Event, PublicationId


@dataclass
class StrictCursor(PatternCursor):
    """A cursor that counts redeliveries, which are permitted, and collects violations.

    A redelivery has the publication id and the `_seq` of an event that arrived before.
    """

    redelivered: int = 0
    violations: list[str] = field(default_factory=list)
    publications: dict[tuple[str, int], PublicationId] = field(default_factory=dict)

    def received(self, event: Event) -> ReceivedEvent | None:
        """Return the event for the application, or None if it is a duplicate."""
        found = super().received(event)
        topic, number = str(event.details.get("topic") or self.pattern.uri), event.details.get("_seq")
        if isinstance(number, int):
            self._check(topic, number, event.publication, is_hidden=found is None)
        else:
            self.violations.append(f"an event of {topic} has no _seq")
        return found

    def _check(self, topic: str, number: int, publication: PublicationId, *, is_hidden: bool) -> None:
        is_first = (topic, number) not in self.publications
        known = self.publications.setdefault((topic, number), publication)
        if known != publication:
            self.violations.append(f"{topic} has two events {number}: {known} and {publication}")
        elif is_hidden and is_first:
            self.violations.append(f"{topic}: event {number} arrived first after a later one")
        elif is_hidden:
            self.redelivered += 1
