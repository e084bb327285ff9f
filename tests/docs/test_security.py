"""The table of fields that come from outside, compared with the types that edges parse, and with the tests."""

import ast
import re
from dataclasses import fields
from typing import get_args

import pytest

from lambdas.shared.http import Request
from signalbox.control.envelope import Envelope
from signalbox.exchange.messages.deliveries import DeliveredMessage
from signalbox.exchange.messages.properties import MessageProperties
from signalbox.kombu.messages import Received
from signalbox.live.arvados.cluster import ClusterUser
from signalbox.live.arvados.requests import BadRequest, SubscribeRequest, UnsubscribeRequest
from signalbox.live.arvados.rows import LogRow
from signalbox.live.bridge.rows import DatabaseRow, ObjectRecord, RowContainer
from signalbox.live.identity.tokens import TokenIdentity, VerifiedToken
from signalbox.live.log.history_request import HistoryRequest
from signalbox.live.model.state import Signal
from signalbox.live.router.publication_metadata import PublicationMetadata
from signalbox.live.session.machine import ARVADOS_RULES, RULES
from signalbox.live.wamp.messages import (
    Abort,
    Authenticate,
    Call,
    Cancel,
    Goodbye,
    Hello,
    Publish,
    Register,
    Subscribe,
    Unregister,
    Unsubscribe,
)
from signalbox.live.wamp.options import PublishOptions, SubscribeOptions
from signalbox.messages import Message
from signalbox.rendezvous.model.states import OfferDelivery
from signalbox.rendezvous.wire.offer import Offer
from signalbox.rendezvous.wire.proxy import ProxyAnswer, ProxyPoll
from signalbox.rendezvous.wire.reply import ClientReply
from tests.docs.markdown import ROOT, section
from tests.integration.shared.test_actors import REACHES

EDGES = (
    *(Envelope, Message, MessageProperties, PublicationMetadata, Offer, OfferDelivery, ProxyPoll, ProxyAnswer),
    *(Request, Hello, Authenticate, Publish, Subscribe, Unsubscribe, Call, DatabaseRow),
    *(ObjectRecord, RowContainer),
    *(SubscribeRequest, UnsubscribeRequest, LogRow, ClusterUser, VerifiedToken, TokenIdentity, ClientReply),
    *(PublishOptions, SubscribeOptions, HistoryRequest, DeliveredMessage, Received),
)
# Types with a method `parse` that read no field from outside: what the stage wrote, what its operator wrote, and words
# of a field of an edge.
STAGE = {"Checkpoint", "LogPositions", "OverviewCall", "ControlReply", "SessionStatus", "PollResponse", "QueueTag"}
STAGE |= {"IndexedDay", "ReplayProgress", "KeptObject", "Sources"}
OPERATOR = {"AppExchange", "BrokerAccount", "ContainerSelection", "FilterCriteria"}
OPERATOR |= {"KeptSelection"}
WORDS = {"Nat", "Pattern", "Target", "TopicPattern"}
# Of these messages of clients, a rule reads the id of the request at most.
UNREAD = {Abort, Goodbye, Cancel, Register, Unregister, BadRequest}
FIELD = re.compile(r"`([A-Z]\w+\.\w+)`")
# Where the limits of actors without a session of AWS are tested; test_actors.py has the others. Two have no limits.
ELSEWHERE = {
    "sender to a split queue": "tests/unit/splitting/forwarding/test_splitter.py::"
    "test_a_filter_that_is_stopped_ends_its_session_with_the_reason_and_the_batch_goes_on",
    "user of a token": "tests/adapters/live/test_accounts.py::test_a_token_s_user_owns_nothing_by_name",
    "other user of a machine with a local stage": "tests/local/emulator/test_isolation.py::"
    "test_no_key_is_in_a_command_line_or_in_the_log",
    "user of an Arvados cluster with a [bridge](arvados.md#rights)": "tests/adapters/bridge/test_topics.py::"
    "test_a_row_of_a_user_changes_no_state",
}
UNLIMITED = {"who deploys", "administrator"}
ROWS = [
    [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
    for line in (ROOT / "docs/security.md").read_text().splitlines()
    if FIELD.match(line[2:])
]


def test_the_table_has_each_field_that_an_edge_reads_once() -> None:
    named = [name for row in ROWS for name in FIELD.findall(row[0])]

    assert sorted(named) == sorted(f"{edge.__name__}.{one.name}" for edge in EDGES for one in fields(edge))


def test_every_message_of_a_client_that_a_rule_reads_is_an_edge() -> None:
    rules = [*RULES.values(), *ARVADOS_RULES.values()]

    assert {kind for each in rules for kind in each} - {*get_args(Signal)} - UNREAD <= {*EDGES}


def test_every_type_that_is_parsed_is_an_edge_or_has_a_known_writer() -> None:
    parsed = set()
    for path in (ROOT / "signalbox").rglob("*.py"):
        classes = [one for one in ast.walk(ast.parse(path.read_text())) if isinstance(one, ast.ClassDef)]
        parsed |= {one.name for one in classes if any(getattr(part, "name", "") == "parse" for part in one.body)}

    assert parsed - {edge.__name__ for edge in EDGES} == STAGE | OPERATOR | WORDS


def test_every_actor_has_a_test_of_its_limits() -> None:
    table = [line for line in section(ROOT / "docs/security.md", "Who can do what").splitlines() if line[:2] == "| "]
    actors = {line.split(" | ")[0].strip("| ") for line in table}

    assert actors - {"Actor"} == {*REACHES, *ELSEWHERE, *UNLIMITED}
    assert all(map(_exists, ELSEWHERE.values()))


@pytest.mark.parametrize("row", ROWS, ids=[row[0].strip("`") for row in ROWS])
def test_each_field_names_who_sets_it_what_it_is_trusted_for_and_its_test(row: list[str]) -> None:
    _, set_by, trusted_for, _check, test = row

    assert set_by
    assert trusted_for
    assert _exists(test.strip("`"))


def _exists(test: str) -> bool:
    path, _, name = test.partition("::")
    return (ROOT / path).exists() and (not name or f"def {name}(" in (ROOT / path).read_text())
