"""The audience of an event: the publisher's allow and deny lists, and the session identity that they match."""

from dataclasses import dataclass

from signalbox.live.wamp.messages import SessionId


@dataclass(frozen=True, slots=True)
class Listener:
    """The identity of a joined session, as allow and deny lists name it."""

    session: SessionId
    authid: str
    authrole: str


@dataclass(frozen=True, slots=True)
class Audience:
    """The allow (`eligible…`) and deny (`exclude…`) lists of an event.

    None means no list. An empty `eligible…` list admits no session. `excluded_publisher` is the publishing session,
    unless it published with `exclude_me` false.
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
        """Return whether a list names sessions by id. Such an event is stored neither as history nor as retained.

        A session id is valid only as long as its connection, so the audience could not be checked later (advanced
        profile, «Event History», security).
        """
        return self.eligible is not None or self.exclude is not None

    def admits(self, listener: Listener) -> bool:
        """Return whether a session may receive the event (advanced profile, «Subscriber Black- and Whitelisting»)."""
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
