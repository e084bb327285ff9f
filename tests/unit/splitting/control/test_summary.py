"""Splits at a glance."""

from signalbox.splitting.control.summary import glance
from signalbox.splitting.model.ports import StoredSplit, UnreadableSplit
from signalbox.splitting.model.split import Stage
from tests.unit.splitting.control.worlds import session, split

RECORD = split(Stage.SPLIT, session())


def test_a_split_tells_its_queues_and_who_shares_them():
    (told,) = glance([StoredSplit(RECORD, 1, ())])

    (queue,), (share,) = RECORD.queues, RECORD.sessions
    assert told == {
        "target": str(RECORD.target),
        "stage": "split",
        "since": RECORD.since.isoformat(),
        "queues": [{"queue_id": queue.queue_id, "original": queue.original}],
        "sessions": [
            {
                "session": share.session_id,
                "owner": share.owner,
                "phase": "ready",
                "started_at": share.started_at.isoformat(),
                "reason": None,
            }
        ],
    }


def test_one_that_cannot_be_read_says_why_and_hides_no_other():
    told = glance([StoredSplit(RECORD, 1, ()), UnreadableSplit("ecs/a/b", "too new")])

    assert told[0] == {"target": "ecs/a/b", "unreadable": "too new"}
    assert [one["target"] for one in told] == ["ecs/a/b", str(RECORD.target)]
