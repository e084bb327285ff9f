"""Frames of any shape, as members and strangers may send them: each is answered or ends its own session alone."""

import json

from hypothesis import given
from hypothesis import strategies as st

from signalbox.live.model.state import ConnectionId
from signalbox.live.procedures.table import PROCEDURES
from signalbox.live.session.inbox import frame_body
from signalbox.live.wamp.codec import MAXIMUM_ID
from tests.fakes.live import REALM, MemoryLive
from tests.unit.live.session.conversation import Client

NAMES = ("match", "get_retained", "_history", "last", "after", "since", "topics", "after_publication", "acknowledge")
NAMES += ("exclude", "eligible", "exclude_authid", "eligible_authrole", "exclude_me", "disclose_me", "retain", "limit")
NAMES += ("reverse", "from_time", "until_time", "topic", "reason", "message", "authid", "authmethods", "roles")
WORDS = ("trial.a", "trial", "", "..", "exact", "wildcard", "ticket", REALM, "2026-11-21T20:15:00Z", "\ud800", "\0YQ==")
texts = st.sampled_from([*WORDS, *PROCEDURES, "0001-01-01T00:00:00+14:00", "trial." + "é" * 125]) | st.text()
numbers = st.sampled_from([0, -1, 1, 1.5, MAXIMUM_ID, MAXIMUM_ID + 1, 10**300]) | st.booleans() | st.none()
values = st.recursive(
    numbers | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES) | texts, inner, max_size=3),
    max_leaves=8,
)
options = st.dictionaries(st.sampled_from(NAMES), values, max_size=3)
requests = st.tuples(st.sampled_from([16, 32, 48]), st.integers(1, 3), options, texts) | st.tuples(
    st.just(48), st.just(1), options, st.sampled_from(list(PROCEDURES)), st.lists(values, max_size=3), options
)
frames = requests | st.tuples(st.sampled_from([1, 2, 5, 6, 8, 33, 34, 36, 50, 68]) | values, values, values, values)


@given(st.lists(frames, max_size=5), st.booleans())
def test_any_frames_are_processed_and_others_are_served(sent, is_joined):
    world = MemoryLive()
    other = Client(world, ConnectionId("other")).open().join()
    hostile = Client(world, ConnectionId("hostile")).open()
    if is_joined:
        hostile.join()

    done = hostile.receive_all(*(frame_body(json.dumps(frame)) for frame in sent))

    assert len(done) == len(sent)
    assert other.say(32, 1, {}, "trial.a")[0][0] == 33
