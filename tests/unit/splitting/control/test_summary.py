"""The summary of all splits."""

from signalbox.splitting.control.summary import summary
from signalbox.splitting.model.split import Stage
from signalbox.splitting.ports import StoredSplit, UnreadableSplit
from tests.unit.splitting.control.observed_states import session, split

RECORD = split(Stage.SPLIT, session())


def test_a_summary_has_the_queues_and_the_sessions():
    (document,) = summary([StoredSplit(RECORD, 1, ())])

    (queue,), (share,) = RECORD.queues, RECORD.sessions
    assert document == {
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


def test_an_unreadable_split_has_its_reason_and_hides_no_other():
    documents = summary([StoredSplit(RECORD, 1, ()), UnreadableSplit("ecs/a/b", "too new")])

    assert documents[0] == {"target": "ecs/a/b", "unreadable": "too new"}
    assert [one["target"] for one in documents] == ["ecs/a/b", str(RECORD.target)]
