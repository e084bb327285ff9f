"""The table of fields that come from outside, compared with the types that edges parse, and with the tests."""

import re
from dataclasses import fields

import pytest

from lambdas.shared.http import Request
from signalbox.control.envelope import Envelope
from signalbox.exchange.messages.properties import MessageProperties
from signalbox.live.bridge.rows import DatabaseRow
from signalbox.live.router.publication_metadata import PublicationMetadata
from signalbox.live.wamp.messages import Authenticate, Call, Hello, Publish, Subscribe
from signalbox.messages import Message
from signalbox.rendezvous.model.states import OfferDelivery
from signalbox.rendezvous.wire.offer import Offer
from signalbox.rendezvous.wire.proxy import ProxyAnswer, ProxyPoll
from tests.docs.markdown import ROOT

EDGES = (
    *(Envelope, Message, MessageProperties, PublicationMetadata, Offer, OfferDelivery, ProxyPoll, ProxyAnswer),
    *(Request, Hello, Authenticate, Publish, Subscribe, Call, DatabaseRow),
)
ROWS = [
    [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
    for line in (ROOT / "docs/security.md").read_text().splitlines()
    if re.match(r"\| `[A-Z]\w+\.\w+`", line)
]


def test_the_table_has_each_field_that_an_edge_reads_once() -> None:
    named = [row[0].strip("`") for row in ROWS]

    assert sorted(named) == sorted(f"{edge.__name__}.{one.name}" for edge in EDGES for one in fields(edge))


@pytest.mark.parametrize("row", ROWS, ids=[row[0].strip("`") for row in ROWS])
def test_each_field_names_who_sets_it_what_it_is_trusted_for_and_its_test(row: list[str]) -> None:
    _, set_by, trusted_for, _check, test = row
    path, _, name = test.strip("`").partition("::")

    assert set_by
    assert trusted_for
    assert (ROOT / path).exists()
    assert not name or re.search(rf"def {name}\(", (ROOT / path).read_text())
