"""The checkpoint of a bridge and the part of its window that is published."""

import json

import pytest

from signalbox.live.bridge.checkpoints import Checkpoint, Intent, InvalidCheckpoint, published_part
from signalbox.live.bridge.rows import IdRange

WINDOW = (Intent(4, "record.a"), Intent(12, "record.b"), Intent(14, "record.a"))


def test_a_checkpoint_is_parsed_from_its_document():
    checkpoint = Checkpoint(11, (IdRange(4, 6),), WINDOW, "ab12", WINDOW[:1])

    assert Checkpoint.parse(json.loads(json.dumps(checkpoint.document()))) == checkpoint


def test_the_document_of_a_checkpoint_is_stable():
    """A bridge continues from a stored checkpoint."""
    assert Checkpoint(11, (IdRange(4, 6),), WINDOW[:1], "ab12").document() == {
        "version": 1,
        "run": "ab12",
        "position": 11,
        "late": [{"first": 4, "last": 6}],
        "window": [{"id": 4, "topic": "record.a"}],
        "published": [],
    }


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        ("text", "expected an object"),
        ({"version": 2, "position": 1}, "version: expected 1"),
        ({"version": 1}, "position: is missing"),
        ({"version": 1, "position": 1, "late": [{"first": 1}]}, r"late\[0\].last: is missing"),
        ({"version": 1, "position": 1, "window": [{"id": 1}]}, r"window\[0\].topic: is missing"),
    ],
    ids=["no object", "newer", "no position", "late", "window"],
)
def test_an_invalid_checkpoint_is_refused(document, problem):
    with pytest.raises(InvalidCheckpoint, match=problem):
        Checkpoint.parse(document)


@pytest.mark.parametrize(
    ("found", "published"),
    [((), 0), (WINDOW[:1], 1), (WINDOW[1:2], 2), ((WINDOW[0], WINDOW[2], Intent(4, "record.b")), 3)],
    ids=["none", "first", "one before it", "all"],
)
def test_everything_before_the_last_row_in_the_log_is_published(found, published):
    assert published_part(WINDOW, found) == WINDOW[:published]
