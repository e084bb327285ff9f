"""Whom an event is for: what its publisher says of its receivers, and who a receiver is."""

from dataclasses import dataclass

from signalbox.live.wamp.messages import SessionId


@dataclass(frozen=True, slots=True)
class Listener:
    """A session as publishers can name it."""

    session: SessionId
    authid: str
    authrole: str


@dataclass(frozen=True, slots=True)
class Audience:
    """The receivers of an event, by lists; None is no list, and an empty one of those who are eligible is nobody.

    `excluded_publisher` is the session that published, unless it wanted its own event.
    """

    eligible: frozenset[SessionId] | None = None
    eligible_authid: frozenset[str] | None = None
    eligible_authrole: frozenset[str] | None = None
    exclude: frozenset[SessionId] | None = None
    exclude_authid: frozenset[str] | None = None
    exclude_authrole: frozenset[str] | None = None
    excluded_publisher: SessionId | None = None

    @property
    def names_sessions(self) -> bool:
        """Say whether sessions are listed: such an event is kept neither as history nor as a topic's latest.

        Sessions do not outlive their connections, so nobody could tell later whom it was for (advanced profile,
        «Event History», security).
        """
        return self.eligible is not None or self.exclude is not None

    def admits(self, listener: Listener) -> bool:
        """Say whether an event is for a session (advanced profile, «Subscriber Black- and Whitelisting»)."""
        is_eligible = (
            (self.eligible is None or listener.session in self.eligible)
            and (self.eligible_authid is None or listener.authid in self.eligible_authid)
            and (self.eligible_authrole is None or listener.authrole in self.eligible_authrole)
        )
        is_excluded = (
            listener.session == self.excluded_publisher
            or listener.session in (self.exclude or ())
            or listener.authid in (self.exclude_authid or ())
            or listener.authrole in (self.exclude_authrole or ())
        )
        return is_eligible and not is_excluded


UNRESTRICTED = Audience()
