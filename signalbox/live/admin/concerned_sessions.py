"""The joined sessions that a change of rights concerns, and their notification."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import product

from signalbox.clock import Clock
from signalbox.live.admin.ports import LiveAdminStore, RightsVersion, SessionNotifier
from signalbox.live.admin.rights_sources import groups_of
from signalbox.live.model.state import KILLED, NOT_ADMITTED, ConnectionId, Killed, RightsChanged, Session, Signal
from signalbox.live.ports import RealmSessions, Sessions
from signalbox.live.rights.principals import EVERYONE, GroupName, PrincipalName, group_of
from signalbox.live.rights.settling import RIGHTS_SETTLE_SECONDS
from signalbox.parallel import ParallelMap, serial_map
from signalbox.sarracenia.rights.names import ExchangeName, UserName

RECORDS_AT_ONCE = 100  # DynamoDB returns at most that many items for one call
# For some users in some realms, about four seconds of the half minute of a function; then one for each realm.
MOST_READS = 1_000


@dataclass(frozen=True, slots=True)
class ConcernedSessions:
    """Finds the sessions of users and groups in a realm; `parallel_map` runs reads concurrently."""

    store: LiveAdminStore
    realm_sessions: RealmSessions
    sessions: Sessions
    parallel_map: ParallelMap = serial_map

    def of_principal(self, realm: ExchangeName, principal: PrincipalName) -> Sequence[ConnectionId]:
        """Return the connections of a user's sessions, or of those whose token or stage groups have a group."""
        group = group_of(principal)
        if group is None:
            return self.realm_sessions.of_user(realm, UserName(principal))
        members = self.realm_sessions.every(realm)
        if principal == EVERYONE:
            return [member.connection for member in members]
        users = {user for _, user in self.store.groups.members(realm, group)}
        by_stage = [one.connection for one in members if one.listener.authid in users]
        others = [one.connection for one in members if one.listener.authid not in users]
        return [*by_stage, *(one.connection for one in self.records(others) if _has(one, group))]

    def of_users(self, realms: Collection[ExchangeName], users: Collection[UserName]) -> Sequence[ConnectionId]:
        """Return the connections of users' sessions in realms."""
        if len(users) > 1 and len(realms) * len(users) > MOST_READS:
            every = self.parallel_map(self.realm_sessions.every, realms)
            return [one.connection for members in every for one in members if one.listener.authid in users]
        found = self.parallel_map(lambda one: self.realm_sessions.of_user(*one), product(realms, users))
        return [connection for connections in found for connection in connections]

    def joined_by_secret(self, realms: Collection[ExchangeName], users: Collection[UserName]) -> Sequence[ConnectionId]:
        """Return the connections of users' sessions in realms that have joined by the users' secrets."""
        found = self.records(self.of_users(realms, users))
        return [one.connection for one in found if one.token is None and not one.is_anonymous]

    def records(self, connections: Sequence[ConnectionId]) -> Sequence[Session]:
        """Return the records of connections' sessions."""
        starts = range(0, len(connections), RECORDS_AT_ONCE)
        pages = self.parallel_map(
            lambda start: self.sessions.find_all(connections[start : start + RECORDS_AT_ONCE]), starts
        )
        return [session for page in pages for session in page]


@dataclass(frozen=True, slots=True)
class RightsNotices:
    """Lets changed rights take effect: in function instances, which keep rights, and in the sessions concerned."""

    sessions: ConcernedSessions
    rights_version: RightsVersion
    notifier: SessionNotifier
    clock: Clock

    def settle(self) -> None:
        """Raise the version of rights, and wait until no function instance uses rights that it read before.

        An event that is published after this is posted by the new rights, and so is the check of a session that is
        notified after this.
        """
        self.rights_version.increment()
        self.clock.sleep(RIGHTS_SETTLE_SECONDS)

    def notify(self, connections: Sequence[ConnectionId]) -> None:
        """Send `RightsChanged` to connections."""
        self._send(RightsChanged(), connections)

    def end(self, connections: Sequence[ConnectionId], message: str) -> int:
        """End the sessions of connections; return their number."""
        self._send(Killed(KILLED, message), connections)
        return len(connections)

    def end_refused(self, realm: ExchangeName) -> int:
        """End the sessions that the realm's present settings do not admit; return their number."""
        realm_sessions = self.sessions.realm_sessions
        if not realm_sessions.every(realm):
            self.rights_version.increment()  # for the sessions that they admit now
            return 0
        self.settle()  # after it no function instance admits sessions by earlier settings
        exchange = self.sessions.store.exchanges.find(realm)
        live = None if exchange is None or exchange.is_deleting else exchange.live
        sessions = self.sessions.records([member.connection for member in realm_sessions.every(realm)])
        refused = [one.connection for one in sessions if live is None or not one.suits(live)]
        return self.end(refused, NOT_ADMITTED)

    def _send(self, signal: Signal, connections: Sequence[ConnectionId]) -> None:
        moment = round(self.clock.now().timestamp() * 1000)
        self.notifier.notify_all(connections, signal, request=f"{type(signal).__name__}:{moment}")


def _has(session: Session, group: GroupName) -> bool:
    return session.token is not None and group in groups_of(session.token)
