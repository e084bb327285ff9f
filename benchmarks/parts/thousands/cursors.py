"""A cursor that checks what it hides from the application."""

from dataclasses import dataclass, field

from signalbox.clients.live.cursor import Cursor, ReceivedEvent
from signalbox.live.wamp.messages import Event, PublicationId


@dataclass
class StrictCursor(Cursor):
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
        if not isinstance(number, int):
            self.violations.append(f"an event of {topic} has no _seq")
            return found
        known = self.publications.setdefault((topic, number), event.publication) if found is not None else None
        if found is None:
            self._check_hidden(topic, number, event.publication)
        elif known != event.publication:
            self.violations.append(f"{topic} has two events {number}: {known} and {event.publication}")
        return found

    def _check_hidden(self, topic: str, number: int, publication: PublicationId) -> None:
        known = self.publications.get((topic, number))
        if known == publication:
            self.redelivered += 1
        elif known is None:
            self.violations.append(f"{topic}: event {number} arrived first after a later one")
        else:
            self.violations.append(f"{topic} has two events {number}: {known} and {publication}")
