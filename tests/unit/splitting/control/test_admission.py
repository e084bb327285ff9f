"""Admission of splits and sessions, and the refused cases."""

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from signalbox.queues import QueueName
from signalbox.splitting.consumers.registry import ConsumedQueue
from signalbox.splitting.control.admission import (
    MAXIMUM_MIRRORS,
    AdmissionRequest,
    SessionRejected,
    SplitEnding,
    new_split,
    with_session,
)
from signalbox.splitting.model.actions import ForgetSession, ForgetSplit, MoveSession, MoveSplit, apply_change
from signalbox.splitting.model.claims import SessionId
from signalbox.splitting.model.session_config import QueueId, parse_mirrord_file
from signalbox.splitting.model.split import PHASES, STAGES, Phase, Split, Stage, ended, with_heartbeats
from signalbox.splitting.model.target import Target
from signalbox.splitting.queues.names import QueueNames
from tests.unit.splitting.forwarding.languages import PlainLanguages

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
LATER = NOW + timedelta(seconds=5)
SECONDS_30 = timedelta(seconds=30)
FOUND = (
    ConsumedQueue(QueueId("memes"), QueueName("memes"), SECONDS_30, sns=True, tags=(("tool", "mirrord"),)),
    ConsumedQueue(QueueId("orders"), QueueName("orders.fifo"), SECONDS_30),
)


def random_parts() -> Iterator[str]:
    return (f"{number:012d}" for number in range(100))


def begun(found: tuple[ConsumedQueue, ...] = FOUND) -> Split:
    return new_split(
        Target.parse("lambda/meme-app"),
        found,
        names=QueueNames(),
        random_parts=random_parts(),
        now=NOW,
        switch_timeout=timedelta(seconds=120),
    )


def request(session: str = "ann", *, owner: str = "Ann", queues: object = None) -> AdmissionRequest:
    queues = queues or {"*": {"queue_type": "SQS", "jq_filter": "true"}}
    config = parse_mirrord_file({"feature": {"split_queues": queues}}, PlainLanguages())
    return AdmissionRequest(SessionId(session), owner, json.dumps({"feature": {"split_queues": queues}}), config)


def joined(split: Split, *requests: AdmissionRequest, now: datetime = NOW) -> Split:
    names = random_parts()
    for one in requests:
        split = with_session(split, one, names=QueueNames(), random_parts=names, now=now)
    return split


def moved_to(split: Split, *stages: Stage) -> Split:
    for stage in stages:
        found = apply_change(split, MoveSplit(stage), now=LATER)
        assert found is not None
        split = found
    return split


def test_a_split_has_a_queue_for_the_deployed_consumer_for_each_original():
    split = begun()

    assert [(queue.original, queue.deployed) for queue in split.queues] == [
        ("memes", "mirrord-tmp-000000000000-fallback-memes"),
        ("orders.fifo", "mirrord-tmp-000000000001-fallback-orders.fifo"),
    ]
    assert (split.queues[0].sns, split.queues[0].tags) == (True, (("tool", "mirrord"),))
    assert [queue.is_fifo for queue in split.queues] == [False, True]
    assert (split.stage, split.sessions) == (Stage.STARTING, ())


def test_a_session_has_a_queue_for_each_original_even_without_a_claim():
    """Wire page, A.1: the local app gets an empty queue where it lists none."""
    split = joined(begun(), request(queues={"memes": {"queue_type": "SQS", "jq_filter": "true"}}))

    (session,) = split.sessions
    assert session.queues == {
        "memes": "mirrord-tmp-000000000000-memes",
        "orders.fifo": "mirrord-tmp-000000000001-orders.fifo",
    }
    assert session.stolen == {"memes"}
    assert (session.phase, session.started_at, session.owner) == (Phase.STARTING, NOW, "Ann")


def test_a_session_that_mirrors_can_own_nothing():
    queues = {"*": {"queue_type": "SQS", "jq_filter": "true", "queue_mode": "mirror"}}

    assert joined(begun(), request(queues=queues)).sessions[0].stolen == frozenset()


MIRROR_ALL = {"*": {"queue_type": "SQS", "jq_filter": "true", "queue_mode": "mirror"}}
ALL_OF_MEMES = {"memes": {"queue_type": "SQS", "queue_mode": "exclusive"}}
SOME_ORDERS = {"orders": {"queue_type": "SQS", "jq_filter": "true"}}


def test_an_exclusive_session_shares_a_queue_with_mirroring_sessions_and_other_queues_with_anyone():
    sessions = request(queues=ALL_OF_MEMES), request("eve", queues=MIRROR_ALL), request("bob", queues=SOME_ORDERS)

    ann, eve, bob = joined(begun(), *sessions).sessions

    assert (ann.exclusive, ann.stolen) == ({"memes"}, {"memes"})
    assert (eve.exclusive, eve.stolen, bob.exclusive, bob.stolen) == (set(), set(), set(), {"orders.fifo"})
    assert [one.session_id for one in joined(begun(), *reversed(sessions)).sessions] == ["bob", "eve", "ann"]


def test_one_session_more_than_may_mirror_a_queue_is_refused():
    """A batch of a FIFO group took longer than the function's time, and a message had 162 KB of history."""
    of_memes = {"memes": MIRROR_ALL["*"]}
    others = [request(f"o{n}", queues=SOME_ORDERS) for n in range(5)]
    mirrors = [request(f"s{n}", queues=of_memes) for n in range(MAXIMUM_MIRRORS - 1)]
    listed = [{"queue_id": "memes", **MIRROR_ALL["*"]}]
    full = joined(begun(), *others, *mirrors, request("listed", queues=listed))

    with pytest.raises(SessionRejected, match="queue 'memes': 40 sessions mirror it, the most for a queue"):
        joined(full, request(queues=MIRROR_ALL))
    assert joined(full, request("s0", queues=of_memes)) == full
    assert len(joined(full, request(queues=SOME_ORDERS), request("x", queues={"orders": MIRROR_ALL["*"]})).live) == 47
    assert len(joined(ended(full, "s0", reason="stopped", now=LATER), request(queues=MIRROR_ALL)).live) == 45


KAFKA = {"queue_type": "Kafka"}


@pytest.mark.parametrize(
    "queues",
    [
        {"memes": KAFKA, **MIRROR_ALL},
        [{"queue_id": "memes", **MIRROR_ALL["*"]}, {"queue_id": "memes", **KAFKA}],
    ],
)
def test_an_entry_of_another_broker_hides_no_session_that_mirrors_a_queue(queues):
    full = joined(begun(), *(request(f"s{n}", queues=queues) for n in range(MAXIMUM_MIRRORS)))

    with pytest.raises(SessionRejected, match="queue 'memes': 40 sessions mirror it"):
        joined(full, request(queues=queues))


@pytest.mark.parametrize("queues", [ALL_OF_MEMES, None])
def test_a_session_on_an_exclusive_queue_is_refused_with_the_name_of_the_holder(queues):
    held = joined(begun(), request(queues=ALL_OF_MEMES))

    with pytest.raises(
        SessionRejected, match="queue 'memes' is exclusive to session 'ann' of Ann; only queue_mode mir"
    ):
        joined(held, request("bob", owner="Bob", queues=queues))


def test_an_exclusive_session_is_refused_while_another_takes_messages_of_the_queue():
    with pytest.raises(SessionRejected, match="queue 'memes' cannot be exclusive: session 'ann' of Ann takes messages"):
        joined(begun(), request(), request("bob", queues=ALL_OF_MEMES))


def test_an_exclusive_session_waits_until_a_session_on_the_queue_has_ended():
    """A session that ends is still given messages of a FIFO queue, and those that it leaves go to others."""
    ending = ended(joined(begun(), request("bob"), request("eve", queues=MIRROR_ALL)), "bob", reason="no", now=LATER)

    with pytest.raises(SplitEnding, match="session 'bob' still has queue 'memes', and is ending"):
        joined(ending, request(queues=ALL_OF_MEMES))
    gone = apply_change(ending, ForgetSession(SessionId("bob")), now=LATER)
    assert [one.session_id for one in joined(gone, request(queues=ALL_OF_MEMES)).sessions] == ["eve", "ann"]


def test_a_session_starts_beside_an_exclusive_one_that_ends():
    ending = ended(
        joined(begun(), request(queues=ALL_OF_MEMES), request("eve", queues=MIRROR_ALL)), "ann", reason="no", now=LATER
    )

    assert [one.session_id for one in joined(ending, request("bob")).sessions] == ["ann", "eve", "bob"]


UPLOADS = ConsumedQueue(QueueId("uploads"), QueueName("uploads"), SECONDS_30, s3_event=True)
BY_METADATA = {"*": {"queue_type": "SQS", "jq_filter": '.S3Metadata.client == "a"'}}


def test_a_filter_asks_for_the_metadata_of_s3_objects_if_the_settings_name_buckets():
    split, asking = begun((UPLOADS,)), request(queues=BY_METADATA)

    with pytest.raises(SessionRejected, match=r"'uploads': the filter uses S3Metadata, and .*splittable_buckets"):
        joined(split, asking)
    assert joined(split, replace(asking, reads_objects=True)).queues[0].s3_event
    assert len(joined(begun(), asking).sessions) == 1  # its queues hold no events, so nothing is read
    assert len(joined(split, request()).sessions) == 1


def test_a_filter_asks_for_no_metadata_on_a_fifo_queue():
    fifo = begun((replace(UPLOADS, original=QueueName("uploads.fifo")),))

    with pytest.raises(SessionRejected, match="which can change between two deliveries of a FIFO queue's message"):
        joined(fifo, replace(request(queues=BY_METADATA), reads_objects=True))


def test_two_simultaneous_sessions_share_one_split():
    """Operator 3.118.1: the second write finds the first one's record and joins it."""
    split = joined(joined(begun(), request("ann")), request("bob"))

    assert [session.session_id for session in split.sessions] == ["ann", "bob"]


def test_the_start_of_an_identical_session_changes_no_record():
    split = joined(begun(), request())

    again = joined(split, request(), now=LATER)

    assert again == split


@pytest.mark.parametrize(
    "other",
    [request(owner="Bob"), request(queues={"memes": {"queue_type": "SQS", "jq_filter": "false"}})],
    ids=["owner", "filters"],
)
def test_another_session_of_the_same_name_is_refused(other):
    with pytest.raises(SessionRejected, match="'ann' already exists: Ann owns it, or its filters differ"):
        joined(begun(), request(), other)


def test_a_session_cannot_be_called_deployed():
    with pytest.raises(SessionRejected, match="the name of the deployed consumer"):
        joined(begun(), request("deployed"))


def test_an_unknown_queue_id_is_refused_with_the_known_ones():
    """Also after a registry change during a split: the registry of its start stays valid."""
    queues = {name: {"queue_type": "SQS"} for name in ("memes", "new", "newer")}

    with pytest.raises(SessionRejected, match="lambda/meme-app has no queues new, newer; it has memes, orders"):
        joined(begun(), request(queues=queues))


def test_a_queue_that_is_described_twice_is_refused():
    twice = (FOUND[0], ConsumedQueue(QueueId("same"), QueueName("memes"), SECONDS_30))

    with pytest.raises(SessionRejected, match="'memes' is described twice in the registry, as 'memes' and 'same'"):
        begun(twice)


def test_a_queue_of_which_one_killed_call_makes_dead_letters_is_refused():
    """Its owner decides whether to change it."""
    with pytest.raises(SessionRejected, match=r"'memes' has maxReceiveCount 1: .* set at least 2 in its RedrivePolicy"):
        begun((replace(FOUND[0], maximum_receives=1),))

    assert begun((replace(FOUND[0], maximum_receives=2),)).queues[0].original == "memes"


@pytest.mark.parametrize("stages", [(Stage.RESTORING,), (Stage.RESTORING, Stage.CLEANING)])
def test_a_split_that_is_being_undone_is_joined_later(stages):
    with pytest.raises(SplitEnding, match="can start afterwards"):
        joined(moved_to(begun(), *stages), request())


def test_a_split_that_is_rolled_back_is_joined_later():
    failing = ended(joined(begun(), request()), SessionId("ann"), reason="no", now=LATER)

    with pytest.raises(SplitEnding, match="can start afterwards"):
        joined(failing, request("bob"))


def test_a_session_that_ends_can_start_again_later():
    ending = ended(joined(begun(), request(), request("bob")), SessionId("ann"), reason="stopped", now=LATER)

    with pytest.raises(SplitEnding, match="'ann' is ending"):
        joined(ending, request())


def test_a_split_that_drains_is_joined_without_another_switch():
    split = joined(moved_to(begun(), Stage.SPLIT, Stage.DRAINING), request())

    assert split.stage is Stage.DRAINING
    assert split.was_split


def test_an_end_is_recorded_once_with_its_reason():
    split = ended(joined(begun(), request()), SessionId("ann"), reason="stopped", now=LATER)

    session = split.session(SessionId("ann"))
    assert (session.phase, session.reason, session.since) == (Phase.ENDING, "stopped", LATER)
    assert ended(split, SessionId("ann"), reason="again", now=LATER) == split
    assert ended(split, SessionId("nobody"), reason="again", now=LATER) == split


def test_heartbeats_renew_sessions_unless_they_are_those_of_earlier_ones():
    before = joined(begun(), request("ann"), request("bob"), request("eve"))
    beats = {SessionId("bob"): LATER, SessionId("eve"): NOW - SECONDS_30, SessionId("zoe"): LATER}

    split = with_heartbeats(before, beats)

    assert [session.heartbeat_at for session in split.sessions] == [NOW, LATER, NOW]


@pytest.mark.parametrize("stage", Stage)
@pytest.mark.parametrize("following", [*Stage, None])
def test_only_transitions_in_the_table_of_stages_are_allowed(stage, following):
    split = Split(Target.parse("lambda/a"), (), (), stage, NOW, timedelta(0))
    action = ForgetSplit() if following is None else MoveSplit(following)

    if following in STAGES[stage]:
        found = apply_change(split, action, now=LATER)
        assert (found is None) if following is None else (found.stage, found.since) == (following, LATER)
    else:
        with pytest.raises(ValueError, match="cannot become"):
            apply_change(split, action, now=LATER)


@pytest.mark.parametrize("phase", [Phase.STARTING, Phase.MATCHING, Phase.READY])
@pytest.mark.parametrize("following", [Phase.MATCHING, Phase.READY])
def test_only_transitions_in_the_table_of_phases_are_allowed(phase, following):
    split = joined(begun(), request())
    path = {Phase.STARTING: [], Phase.MATCHING: [Phase.MATCHING], Phase.READY: [Phase.MATCHING, Phase.READY]}[phase]
    for one in path:
        split = apply_change(split, MoveSession(SessionId("ann"), one, effective_at=LATER), now=NOW)
    action = MoveSession(SessionId("ann"), following)

    if following in PHASES[phase]:
        found = apply_change(split, action, now=LATER).sessions[0]
        assert (found.phase, found.since) == (following, LATER)
        assert found.effective_at == (LATER if path else None)
    else:
        with pytest.raises(ValueError, match="cannot become"):
            apply_change(split, action, now=LATER)


def test_an_unknown_session_cannot_change_its_phase():
    with pytest.raises(ValueError, match="no session 'ann'"):
        apply_change(begun(), MoveSession(SessionId("ann"), Phase.READY), now=NOW)


def test_an_ended_session_is_removed():
    split = joined(begun(), request("ann"), request("bob"))

    assert [one.session_id for one in apply_change(split, ForgetSession(SessionId("ann")), now=NOW).sessions] == ["bob"]
