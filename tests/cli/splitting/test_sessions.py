"""`signalbox split start`, `run`, `tail` and `stop`, against a fake stage."""

import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest

from signalbox.clients.splitting.sessions import SessionNotReady
from signalbox.control.protocol import CommandRejected
from signalbox.errors import RejectedError
from signalbox.splitting.model.session_config import InvalidSessionConfig
from tests.cli.shared.stage import FakeStage, Refusal, fake_stage, interrupting, printed, split, waiting_replies
from tests.fakes.aws import aws  # noqa: F401 - a fixture

CONFIG = {"feature": {"split_queues": {"memes": {"queue_type": "SQS", "message_filter": {"tenant": "^ann$"}}}}}
TARGET = ("--target", "lambda/meme-app")


def session(phase: str, **more: Any) -> dict[str, Any]:
    queue = {"queue_id": "memes", "original": "memes", "temporary": "mirrord-1", "url": "https://sqs/1/mirrord-1"}
    environment = {"MEME_QUEUE": "mirrord-1", "WORDS": "two words"}
    return {
        "session": "ann-1",
        "target": "lambda/meme-app",
        "phase": phase,
        "queues": [queue],
        "environment": environment,
        "notes": ["memes: its dead-letter queue does not allow more sources"],
        **more,
    }


@pytest.fixture
def stage(aws) -> Iterator[FakeStage]:  # noqa: F811
    with fake_stage() as stage:
        stage.replies |= {
            "start": lambda _: session("starting"),
            "heartbeat": lambda _: session("ready"),
            "stop": lambda _: session("ending"),
        }
        yield stage


@pytest.fixture
def config(tmp_path: Path) -> str:
    path = tmp_path / "mirrord.json"
    path.write_text(json.dumps(CONFIG))
    return str(path)


def refusing(text: str, code: str = "rejected") -> Callable[[object], object]:
    def refuse(_: object) -> object:
        raise Refusal(text, code)

    return refuse


def python(code: str) -> tuple[str, ...]:
    return ("--", sys.executable, "-c", code)


def test_a_session_is_started_without_holding_it(stage, config):
    result = split("start", *TARGET, "--config", config, "--session", "ann-1", "--owner", "ann", "--no-hold")

    assert result.stdout == "MEME_QUEUE=mirrord-1\nWORDS='two words'\n"
    assert "· session 'ann-1' is starting\n· session 'ann-1' is ready\n" in result.stderr
    assert "· memes: its dead-letter queue does not allow more sources\n" in result.stderr
    asked = stage.asked[0]
    assert (asked["target"], asked["session"], asked["owner"]) == ("lambda/meme-app", "ann-1", "ann")
    assert asked["config"] == CONFIG
    assert stage.commands == ["start", "heartbeat"]
    assert waiting_replies() == 0


def test_a_session_takes_all_queues_as_a_whole_without_a_file(stage):
    split("start", *TARGET, "--exclusive", "--no-hold")
    stage.replies["heartbeat"] = lambda _: session("ready")
    split("run", *TARGET, "--exclusive", *python("pass"))

    configs = [one["config"] for one in stage.asked if one["command"] == "start"]
    assert configs == [{"feature": {"split_queues": {"*": {"queue_type": "SQS", "queue_mode": "exclusive"}}}}] * 2


def test_a_variable_that_the_command_line_names_is_in_the_filters_of_a_file(stage, config, monkeypatch):
    monkeypatch.setenv("TENANT", "ann")
    path = Path(config)
    path.write_text(path.read_text().replace("^ann$", "^{{ get_env(name='TENANT') }}$"))

    split("start", *TARGET, "--config", config, "--env", "TENANT", "--no-hold")
    with pytest.raises(RejectedError, match="add --env TENANT"):
        split("tail", *TARGET, "--config", config)

    assert [one["config"] for one in stage.asked if one["command"] == "start"] == [CONFIG]


@pytest.mark.parametrize("command", [("start", "--no-hold"), ("run", *python("pass"))])
@pytest.mark.parametrize("options", [(), ("--exclusive", "--config", "-")])
def test_a_session_has_either_a_config_or_all_queues(stage, command, options):
    with pytest.raises(RejectedError, match=r"give either --config, for .* or --exclusive"):
        split(command[0], *TARGET, *options, *command[1:])
    assert stage.commands == []


def test_the_target_of_the_config_is_the_default_and_the_stage_completes_it(stage, tmp_path):
    path = tmp_path / "mirrord.json"
    path.write_text(json.dumps({"operator": True, "target": "deployment/meme-app/main", **CONFIG}))
    stage.replies["start"] = lambda _: session("starting", target="deployment/meme-app@default.main")

    split("start", "--config", str(path), "--no-hold")
    split("start", *TARGET, "--config", str(path), "--no-hold")

    asked = [one["target"] for one in stage.asked]
    assert asked[:2] == ["deployment/meme-app/container/main", "deployment/meme-app@default.main"]
    assert asked[2] == "lambda/meme-app"


def test_a_session_without_a_target_is_refused(stage, config):
    with pytest.raises(RejectedError, match=r"give --target, or `target` in the mirrord\.json"):
        split("start", "--config", config)
    assert stage.asked == []


def test_a_session_is_named_after_its_user_by_default(stage, config):
    split("start", *TARGET, "--config", config, "--no-hold", "--json")
    split("start", *TARGET, "--config", config, "--no-hold", "--json")

    starts = [one for one in stage.asked if one["command"] == "start"]
    assert starts[0]["session"] != starts[1]["session"]
    assert "@" in starts[0]["owner"]


def test_json_output_is_the_stages_session(stage, config):
    result = split("start", *TARGET, "--config", config, "--no-hold", "--json")

    assert json.loads(result.stdout) == session("ready")


def test_an_invalid_config_is_refused_before_anything_is_sent(stage, tmp_path):
    path = tmp_path / "mirrord.json"
    path.write_text('{"feature": {"split_queues": {"memes": {"queue_type": "SQS", "message_filter": {"a": "("}}}}}')

    with pytest.raises(InvalidSessionConfig, match="not a regular expression"):
        split("start", *TARGET, "--config", str(path))
    assert stage.asked == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_held_session_ends_when_it_is_interrupted(stage, config, number):
    with interrupting(lambda: printed("Ctrl-C ends it"), number):
        result = split("start", *TARGET, "--config", config)

    assert result.exit_code == 0
    assert stage.commands[-1] == "stop"
    assert waiting_replies() == 0


def test_a_session_interrupted_during_its_start_is_ended(stage, config):
    def interrupt(_: object) -> object:
        os.kill(os.getpid(), signal.SIGINT)
        return session("starting")

    stage.replies["heartbeat"] = interrupt

    result = split("start", *TARGET, "--config", config)

    assert result.exit_code == 130
    assert stage.commands[-1] == "stop"


def test_a_session_that_is_not_ready_in_time_is_ended(stage, config):
    stage.replies["heartbeat"] = lambda _: session("starting")

    with pytest.raises(SessionNotReady):
        split("start", *TARGET, "--config", config, "--timeout", "1")
    assert stage.commands[-1] == "stop"


def test_another_users_session_of_the_same_name_is_not_ended(stage, config):
    stage.replies["start"] = refusing("session 'ann-1' already exists: bob owns it")

    with pytest.raises(CommandRejected, match="bob owns it"):
        split("run", *TARGET, "--config", config, "--session", "ann-1", *python("pass"))
    assert stage.commands == ["start"]


def test_a_command_runs_with_the_sessions_queues_and_its_status_is_returned(stage, config, tmp_path):
    code = f"import os; open({str(tmp_path / 'seen')!r}, 'w').write(os.environ['MEME_QUEUE']); raise SystemExit(7)"

    result = split("run", *TARGET, "--config", config, *python(code))

    assert result.exit_code == 7
    assert (tmp_path / "seen").read_text() == "mirrord-1"
    assert stage.commands[-1] == "stop"
    assert "its unconsumed messages are returned" in result.stderr


def test_a_queue_whose_name_the_command_does_not_get_is_named(stage, config):
    stage.replies["start"] = lambda _: session("ready", environment={"WORDS": "two words"})

    result = split("run", *TARGET, "--config", config, *python("pass"))

    assert "queue 'memes': no variable has its name, so the command cannot find it; add `envVar`" in result.stderr


def test_a_missing_command_is_refused_before_anything_is_sent(stage, config):
    with pytest.raises(RejectedError, match="cannot run 'no-such-program': there is no such program"):
        split("run", *TARGET, "--config", config, "--", "no-such-program")
    assert stage.commands == []


def test_a_command_that_cannot_run_leaves_no_session(stage, config, tmp_path):
    program = tmp_path / "program"
    program.write_bytes(b"\x7fELF")
    program.chmod(0o755)

    result = split("run", *TARGET, "--config", config, "--", str(program))

    assert result.exit_code == 1
    assert stage.commands[-1] == "stop"


def test_a_session_without_a_queue_on_sqs_is_refused_before_anything_is_sent(stage, tmp_path):
    file = tmp_path / "mirrord.json"
    file.write_text(json.dumps({"feature": {"split_queues": {"memes": {"queue_type": "Kafka"}}}}))

    with pytest.raises(
        InvalidSessionConfig, match=r"no queue is on SQS, so there is nothing to split: memes \(Kafka\)"
    ):
        split("start", *TARGET, "--config", str(file))
    assert stage.commands == []


def test_a_killed_command_has_the_status_that_shells_give_it(stage, config):
    result = split("run", *TARGET, "--config", config, *python("import os; os.kill(os.getpid(), 9)"))

    assert result.exit_code == 137


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_are_passed_to_the_command(stage, config, number):
    code = (
        "import os, signal, time\n"
        f"signal.signal({int(number)}, lambda *_: exit(42))\n"
        f"os.kill(os.getppid(), {int(number)})\n"
        "time.sleep(30)\n"
    )

    result = split("run", *TARGET, "--config", config, *python(code))

    assert result.exit_code == 42
    assert stage.commands[-1] == "stop"


def test_a_failed_stop_is_reported(stage, config):
    stage.replies["stop"] = refusing("throttled", "unavailable")

    result = split("run", *TARGET, "--config", config, *python("pass"))

    assert result.exit_code == 0
    assert "it ends without heartbeats in a minute: throttled" in result.stderr


def test_an_ended_session_is_not_one_that_could_not_be_stopped(stage, config):
    stage.replies["stop"] = refusing("lambda/meme-app has no session 'ann-1'", "rejected")

    result = split("run", *TARGET, "--config", config, *python("pass"))

    assert "lambda/meme-app has no session 'ann-1'" in result.stderr
    assert "could not be stopped" not in result.stderr


@pytest.mark.usefixtures("stage")
def test_a_session_is_stopped_by_name():
    assert split("stop", "ann-1", *TARGET).stdout == "ann-1  ending\n"
    assert json.loads(split("stop", "ann-1", *TARGET, "--json").stdout) == session("ending")


def test_stop_can_wait_until_the_session_is_gone(stage):
    splits = iter([[{"sessions": [session("ending")]}], []])
    stage.replies["status"] = lambda _: {"splits": next(splits), "unreadable": []}

    assert split("stop", "ann-1", *TARGET, "--wait").stdout == "ann-1  gone\n"
    assert stage.commands == ["stop", "status", "status"]


@pytest.fixture
def copies(stage) -> str:
    url = boto3.client("sqs").create_queue(QueueName="mirrord-1")["QueueUrl"]
    stage.replies["start"] = lambda _: session(
        "ready", queues=[{"queue_id": "memes", "original": "memes", "temporary": "mirrord-1", "url": url}]
    )
    attributes = {
        "tenant": {"DataType": "String", "StringValue": "ann"},
        "raw": {"DataType": "Binary", "BinaryValue": b"\xff"},
    }
    boto3.client("sqs").send_message(QueueUrl=url, MessageBody="hello", MessageAttributes=attributes)
    boto3.client("sqs").send_message(QueueUrl=url, MessageBody="again")
    return url


def test_tail_prints_copies_and_deletes_them(stage, copies):
    result = split("tail", *TARGET, "--count", "2")

    assert "tenant=ann" in result.stdout
    assert [line for line in result.stdout.splitlines() if line.startswith("  ")] == ["  hello", "  again"]
    entry = {"queue_type": "SQS", "queue_mode": "mirror", "jq_filter": "true"}
    assert stage.asked[0]["config"] == {"feature": {"split_queues": {"*": entry}}}
    assert stage.commands == ["start", "stop"]
    counted = boto3.client("sqs").get_queue_attributes(QueueUrl=copies, AttributeNames=["All"])["Attributes"]
    assert (counted["ApproximateNumberOfMessages"], counted["ApproximateNumberOfMessagesNotVisible"]) == ("0", "0")


def test_json_output_of_tail_is_one_message_a_line(copies):
    lines = split("tail", *TARGET, "--json", "--count", "2").stdout.splitlines()

    first = json.loads(lines[0])
    assert (first["queue_id"], first["message"]["Body"]) == ("memes", "hello")
    assert first["message"]["MessageAttributes"]["raw"]["BinaryValue"] == "/w=="
    assert "ReceiptHandle" not in first["message"]


def test_tail_builds_its_config_from_its_filters(stage, copies):
    options = ["--queue", "memes", "--filter", "tenant=^a=", "--jq", ".Body | length > 3"]

    split("tail", *TARGET, *options, "--count", "1")

    assert stage.asked[0]["config"]["feature"]["split_queues"]["memes"] == {
        "queue_type": "SQS",
        "queue_mode": "mirror",
        "message_filter": {"tenant": "^a="},
        "jq_filter": ".Body | length > 3",
    }


def test_tail_makes_a_config_mirroring(stage, copies, config):
    split("tail", *TARGET, "--config", config, "--count", "1")

    entry = stage.asked[0]["config"]["feature"]["split_queues"]["memes"]
    assert (entry["queue_mode"], entry["message_filter"]) == ("mirror", {"tenant": "^ann$"})


def test_a_filter_of_tail_without_a_name_is_refused(stage):
    with pytest.raises(RejectedError, match="is not NAME=REGEX"):
        split("tail", *TARGET, "--filter", "ann")
