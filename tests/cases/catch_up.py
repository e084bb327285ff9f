"""The cases of `catch_up.json` for the clients in Python."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_suffix(".json")
FRAME_BYTES = 32_768  # API Gateway closes a connection on which a larger frame comes


def cases() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(FILE.read_text())["cases"]
    return found


def goodbyes() -> list[dict[str, str]]:
    found: list[dict[str, str]] = json.loads(FILE.read_text())["goodbyes"]
    return found


def expanded(events: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the events, and of an entry with `topics` an event in each topic."""
    for event in events:
        topics = event.get("topics")
        if topics is None:
            yield dict(event)
            continue
        for number in range(topics["count"]):
            topic = f"a.{number:04}.{'x' * topics['padding']}"
            yield {"topic": topic, "sequence": event["sequence"], "publication": event["publication"] + number}


def delivered(case: Mapping[str, Any], style: str = "") -> list[int]:
    """Return the publication ids that a client of a style delivers, in order."""
    listed = case.get(f"delivered_{style}", case["delivered"])
    ranges = [range(one, one + 1) if isinstance(one, int) else range(one["from"], one["to"] + 1) for one in listed]
    return [publication for one in ranges for publication in one]


def check_request(requested: Any, expected: Any) -> None:
    """Fail unless a history request is the expected one, or names at least `at_least` topics within a frame."""
    after = (expected or {}).get("after")
    if not isinstance(after, dict) or "at_least" not in after:
        assert requested == expected
        return
    topics = requested["after"]["topics"]
    assert requested["after"]["since"] == after["since"]
    assert len(topics) >= after["at_least"]
    assert set(topics.values()) == {1}
    assert any(topic.startswith("a.0499.") for topic in topics), "the latest topic is not named"
    assert len(json.dumps(requested)) < FRAME_BYTES
