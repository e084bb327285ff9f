"""Batches of WAMP messages in one WebSocket message."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signalbox.live.wamp.batches import batch, for_inbox, messages_of, separator_for
from signalbox.live.wamp.codec import serialize
from signalbox.live.wamp.messages import Payload, RequestId, Result

TEXTS = st.lists(st.text().map(lambda text: serialize(Result(RequestId(1), {}, Payload((text,))))), max_size=5)


def test_a_separator_ends_each_message() -> None:
    """As the specification shows it: `0x1e` behind each message, also behind a single one."""
    assert batch(["[1]", "[2]"], "\x1e") == "[1]\x1e[2]\x1e"
    assert batch(["[1]"], "\x1e") == "[1]\x1e"


@pytest.mark.parametrize(
    ("user_agent", "separator"),
    [("AutobahnPython/26.10.2", "\x18"), ("Signalbox/1.0", "\x1e"), ("Mozilla/5.0", "\x1e"), ("", "\x1e")],
)
def test_autobahn_for_python_has_a_separator_of_its_own(user_agent: str, separator: str) -> None:
    """tests/integration/live/test_clients.py runs Autobahn itself."""
    assert separator_for(user_agent) == separator


@given(TEXTS, st.sampled_from("\x18\x1e"))
def test_the_messages_of_a_batch_are_found_before_and_behind_the_inbox(texts: list[str], separator: str) -> None:
    frame = batch(texts, separator)

    assert messages_of(frame) == messages_of(for_inbox(frame)) == texts


@given(TEXTS)
def test_the_inbox_has_no_character_that_sqs_refuses(texts: list[str]) -> None:
    assert not set(for_inbox(batch(texts, "\x1e"))) & set(map(chr, (*range(9), 11, 12, *range(14, 32))))


def test_an_indented_message_is_one_message() -> None:
    assert messages_of('[\n 1,\n "a"\n]\x1e[2]\x1e') == ['[\n 1,\n "a"\n]', "[2]"]
