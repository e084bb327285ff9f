"""`signalbox split list`, `status`, `explain` against live sessions, `audit` and `policy`."""

import json
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import boto3
import pytest

from signalbox.errors import RejectedError
from signalbox.splitting.model.target import InvalidTarget
from tests.cli.shared.stage import FakeStage, cells, fake_stage, split
from tests.fakes.aws import aws  # noqa: F401 - a fixture

QUEUE = {"queue_id": "memes", "original": "meme-queue", "waiting": 3, "in_flight": None}


def _before(**ago: float) -> str:
    return (datetime.now(UTC) - timedelta(**ago)).isoformat()


def split_document() -> dict[str, object]:
    session = {
        "session": "ann-1",
        "target": "lambda/meme-app",
        "owner": "ann@desk",
        "phase": "ending",
        "reason": "no sign of life",
        "started_at": _before(hours=5, minutes=1),
        "heartbeat_at": _before(seconds=70),
        "queues": [{**QUEUE, "temporary": "mirrord-1"}, {**QUEUE, "queue_id": "other", "temporary": "mirrord-2"}],
    }
    return {
        "target": "lambda/meme-app",
        "stage": "split",
        "since": _before(days=2.5),
        "target_reads": "deployed",
        "queues": [{**QUEUE, "deployed": "mirrord-0", "forwarding": "on"}],
        "sessions": [session],
        "notes": ["AccessDenied for meme-queue"],
    }


@pytest.fixture
def stage(aws) -> Iterator[FakeStage]:  # noqa: F811
    with fake_stage() as stage:
        stage.replies["status"] = status
        yield stage


def status(command: Mapping[str, object]) -> object:
    """Return the reply of a stage with a split whose ages begin now."""
    return status_of(split_document())(command)


def status_of(*documents: dict[str, Any]) -> Callable[[Mapping[str, object]], object]:
    """Return the reply of a stage with these splits: a list of all, or the split of a target."""

    def reply(command: Mapping[str, object]) -> object:
        target = command.get("target")
        return {"splits": [one for one in documents if one["target"] == target]} if target else list(documents)

    return reply


def test_sessions_are_listed_with_their_backlog(stage):
    rows = cells(split("list").stdout)

    assert ["ann-1", "lambda/meme-app", "ann@desk", "ending", "5", "h", "70", "s", "memes", "3"] in rows
    assert ["other", "3"] in rows
    assert [command.get("target") for command in stage.asked] == [None, "lambda/meme-app"]


def test_exclusive_queues_are_marked(stage):
    document = split_document()
    document["sessions"][0]["queues"][0]["exclusive"] = True
    stage.replies["status"] = status_of(document)

    assert ["memes", "(exclusive)", "3"] in [row[-3:] for row in cells(split("list").stdout)]
    assert "ann-1 of ann@desk is ending, exclusive on memes: no sign of life" in split("status").stdout


def test_sessions_can_be_listed_for_one_target(stage):
    listed = json.loads(split("list", "--target", "Lambda/meme-app", "--json").stdout)

    assert [one["session"] for one in listed] == ["ann-1"]
    assert stage.asked[0]["target"] == "lambda/meme-app"


def test_an_invalid_target_is_refused_before_anything_is_sent(stage):
    with pytest.raises(InvalidTarget):
        split("list", "--target", "meme-app")
    assert stage.asked == []


def test_status_shows_which_queues_the_target_reads(stage):
    text = split("status").stdout

    assert "lambda/meme-app: split for 2 d, reads deployed" in text
    assert ["memes", "meme-queue", "mirrord-0", "on", "3"] in cells(text)
    assert "  ann-1 of ann@desk is ending: no sign of life\n  AccessDenied for meme-queue\n" in text


def test_json_output_of_status_is_the_stages_result(stage):
    (document,) = json.loads(split("status", "--json").stdout)["splits"]

    assert document["queues"] == split_document()["queues"]


def test_status_shows_unreadable_splits(stage):
    stage.replies["status"] = status_of({"target": "lambda/other", "unreadable": "version 2"})

    assert split("status").stdout == "lambda/other: unknown, because its record cannot be read: version 2\n"
    unreadable = {"target": "lambda/other", "reason": "version 2"}
    assert json.loads(split("status", "--json").stdout) == {"splits": [], "unreadable": [unreadable]}


def test_a_split_that_ends_between_the_list_and_its_status_is_left_out(stage):
    stage.replies["status"] = lambda command: {"splits": []} if "target" in command else [split_document()]

    assert split("list").stdout == "no sessions\n"


def test_empty_lists_are_reported(stage):
    stage.replies["status"] = status_of()

    assert split("list").stdout == "no sessions\n"
    assert split("status").stdout == "no queue is split\n"
    assert json.loads(split("list", "--json").stdout) == []


@pytest.mark.parametrize("command", ["list", "status"])
def test_a_mistyped_target_is_answered_with_the_nearest(stage, command):
    stage.replies |= {
        "status": status_of(),
        "registries": lambda _: [{"target": "lambda/meme-app"}],
    }

    mistyped = split(command, "--target", "lambda/mem-app").stdout
    known = split(command, "--target", "lambda/meme-app").stdout

    assert mistyped.endswith(" of 'lambda/mem-app', which has no registry; did you mean 'lambda/meme-app'?\n")
    assert known.endswith(" of 'lambda/meme-app'\n")


def test_explain_can_use_live_sessions(stage, tmp_path):
    verdict = {"session": "ann-1", "mode": "steal", "matches": True, "outcome": "match", "reason": "tenant matches"}
    decision = {"message": 0, "owner": "ann-1", "copies": [], "verdicts": [verdict]}
    stage.replies["explain"] = lambda _: {"decisions": [decision]}
    (tmp_path / "messages.json").write_text('{"Messages": [{"Body": "hello"}]}')
    arguments = ("--target", "lambda/meme-app", "--queue", "memes", "--messages", str(tmp_path / "messages.json"))

    shown = split("explain", *arguments).stdout

    assert "ann-1 (steal): tenant matches" in shown
    assert json.loads(split("explain", *arguments, "--json").stdout) == decision
    assert (stage.asked[0]["queue_id"], stage.asked[0]["messages"]) == ("memes", [{"Body": "hello"}])


@pytest.mark.parametrize("options", [(), ("--target", "lambda/meme-app", "--sessions", "-")], ids=["neither", "both"])
def test_explain_needs_either_sessions_or_a_target(stage, options):
    with pytest.raises(RejectedError, match="either --sessions"):
        split("explain", "--queue", "memes", "--messages", "-", *options)


def event(**fields: object) -> dict[str, object]:
    labels = {"session": "ann-1", "owner": "ann@desk", "verdict": "tenant matches"}
    at = {"occurred_at": "2026-11-20 10:00:00", "kind": "routed", "outcome": "session", "destination": "mirrord-1"}
    return {**at, "reason": None, "attempt": "1", "latency_ms": None, "labels": labels, **fields}


TO_SESSION, TO_DEPLOYED = event(), event(outcome="deployed", destination="mirrord-0", labels={})


def test_an_audit_asks_the_stage_and_shows_the_events(stage):
    stage.replies["audit"] = lambda _: {"events": [TO_SESSION, TO_DEPLOYED]}

    text = split("audit", "1", "--days", "2").stdout

    assert (stage.asked[0]["message_id"], stage.asked[0]["days"]) == ("1", 2)
    assert f"{datetime(2026, 11, 20, 10, tzinfo=UTC).astimezone():%Y-%m-%d %H:%M:%S}" in text
    assert text.count("mirrord-1") == 1
    assert "ann-1" in text
    assert "tenant matches" in text
    assert "no session matches" in text


def test_an_audit_says_why_the_metadata_of_an_object_was_not_read(stage):
    labels = {"s3_metadata": "the S3 object does not exist"}
    stage.replies["audit"] = lambda _: {"events": [TO_DEPLOYED | {"labels": labels}]}

    text = " ".join(split("audit", "1").stdout.split())

    assert "no session matches; the S3 object does not exist" in text.replace("│ ", "")


def test_json_output_of_audit_has_all_fields(stage):
    stage.replies["audit"] = lambda _: {"events": [TO_SESSION, TO_DEPLOYED]}

    assert json.loads(split("audit", "1", "--json").stdout) == [TO_SESSION, TO_DEPLOYED]


def test_an_audit_of_an_unknown_message_says_so(stage):
    stage.replies["audit"] = lambda _: {"events": []}

    result = split("audit", "1")

    assert result.stdout == ""
    assert "no events of '1' in the last 7 days" in result.stderr


def test_a_stage_without_splitting_is_named_with_the_remedy(aws):  # noqa: F811
    template = {"Resources": {"Topic": {"Type": "AWS::SNS::Topic"}}, "Outputs": {"Capabilities": {"Value": "x"}}}
    boto3.client("cloudformation").create_stack(StackName="signalbox", TemplateBody=json.dumps(template))

    with pytest.raises(RejectedError, match=r"the stage has no splitting: .* deploy capabilities=x,splitting"):
        split("list")
