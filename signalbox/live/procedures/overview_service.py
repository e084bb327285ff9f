"""The service behind the function `overview`: it answers passed-on calls into their callers' outboxes."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from signalbox.documents import shown
from signalbox.errors import UnavailableError
from signalbox.live.identity.tokens import TokenIdentity
from signalbox.live.log.read_limits import InstanceReads, ReadBudget, ReadsBusy
from signalbox.live.model.effects import Post
from signalbox.live.outbox.items import reply_item
from signalbox.live.outbox.overview_calls import InvalidOverviewCall, OverviewCall
from signalbox.live.outbox.ports import Outboxes
from signalbox.live.procedures.calls import ProcedureUnavailable, RightEnded, reply
from signalbox.live.procedures.overview import MayRead, OverviewContext, StageOverview
from signalbox.live.procedures.table import OVERVIEW_PROCEDURES, Procedure
from signalbox.live.rights.grants import Rights
from signalbox.live.wamp.messages import Payload
from signalbox.sarracenia.rights.names import ExchangeName, UserName

BY_URI: Mapping[str, Procedure[OverviewContext]] = {one.uri: one for one in OVERVIEW_PROCEDURES}


class UserRights(Protocol):
    """The current rights of users in realms."""

    def find(
        self, realm: ExchangeName, user: UserName, *, token: TokenIdentity | None = None, is_anonymous: bool = False
    ) -> Rights:
        """Return the rights of a user or of a token's user in a realm: none for an unknown user."""


@dataclass(frozen=True, slots=True)
class OverviewService:
    """Answers calls of the overview procedures. Answering a call twice puts one reply into the outbox."""

    stage: StageOverview
    rights: UserRights
    outboxes: Outboxes
    reads: InstanceReads
    is_late: Callable[[], bool] = lambda: False

    def answer(self, body: str) -> None:
        """Put the RESULT or ERROR of a call into its caller's outbox. Raises `InvalidOverviewCall`.

        Other errors propagate, and the call is answered when its message is received again.
        """
        call = OverviewCall.parse(body)
        procedure = BY_URI.get(call.procedure)
        if procedure is None:
            raise InvalidOverviewCall(f"procedure: expected one of {', '.join(BY_URI)}, not {shown(call.procedure)}")
        rights = self.rights.find(call.realm, call.user, token=call.token, is_anonymous=call.is_anonymous)
        message = reply(call.request, lambda: self._result(procedure, call, rights))
        self.outboxes.put(call.connection, [reply_item(Post(message), call.item_id)])

    def _result(self, procedure: Procedure[OverviewContext], call: OverviewCall, rights: Rights) -> Payload:
        if not procedure.is_permitted(rights):
            raise RightEnded("this user may not call this procedure")
        try:
            with self.reads.request((call.realm, call.user), lambda: False) as budget:
                may_read = self._may_read(call, rights, budget)
                context = OverviewContext(self.stage, call.realm, rights, call.at, may_read, budget.spend)
                return procedure.answer(context, call.payload)
        except UnavailableError as error:
            raise ProcedureUnavailable(str(error)) from error  # the caller decides when to call again

    def _may_read(self, call: OverviewCall, rights: Rights, budget: ReadBudget) -> MayRead:
        def may_read(exchange: ExchangeName) -> bool:
            if rights.is_admin or exchange == call.realm:
                return rights.is_admin or rights.reads_realm
            if call.token is not None:
                return False  # a token is valid in the realm of its issuer alone
            budget.posts += 1  # a read takes about as long
            if self.is_late():
                raise ReadsBusy("the function has no time to read the rights to more exchanges: try again")
            return self.rights.find(exchange, call.user).reads_realm

        return may_read
