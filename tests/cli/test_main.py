"""The `signalbox` command itself: the stage that it finds, its exit statuses, and the imports of its help."""

import errno
import json
import os
import re
import signal
import subprocess
import sys
import time
from functools import reduce
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError, NoCredentialsError
from typer.main import get_command
from typer.testing import CliRunner

from signalbox import __version__
from signalbox.cli import local, main
from signalbox.cli.main import app
from signalbox.cli.shared.deployment import find_deployment
from signalbox.cli.shared.signals import Ending
from signalbox.clients.deployment import AwsDeployment, LocalDeployment, local_deployment
from signalbox.errors import RejectedError, UnavailableError
from tests.cli.shared.commands import leaves
from tests.cli.shared.stage import serving
from tests.fakes.aws import aws  # noqa: F401 - a fixture

FOLDER = Path("/home/me/.signalbox")
LOCAL = {
    "endpoint_url": "http://127.0.0.1:4566",
    "region": "eu-west-1",
    "rendezvous_url": "http://127.0.0.1:4566/rendezvous/",
    "admin_credentials": {"access_key_id": "AKIA1", "secret_access_key": "hidden"},
    "outputs": {"BrokerQueueName": "snowflake-broker"},
}


def test_the_stage_is_found_from_a_folder_inside_the_checkout(tmp_path):
    (tmp_path / ".signalbox").mkdir()
    (tmp_path / ".signalbox" / "local.json").write_text(json.dumps(LOCAL))
    (tmp_path / "a" / "b").mkdir(parents=True)

    found = find_deployment(folder=tmp_path / "a" / "b")

    assert found == local_deployment(LOCAL, folder=tmp_path / ".signalbox")
    assert found.outputs["BrokerQueueName"] == "snowflake-broker"


@pytest.mark.parametrize(
    ("changed", "owner", "problem"),
    [
        ({}, 4242, "belongs to another user"),
        ({"endpoint_url": "http://stage.example:4566"}, 0, "names 'http://stage.example:4566', and a local stage"),
        ({"websocket_url": "wss://stage.example"}, 0, "names 'wss://stage.example', and a local stage"),
    ],
)
def test_a_local_stage_of_another_user_or_machine_is_refused(tmp_path, monkeypatch, changed, owner, problem):
    (tmp_path / ".signalbox").mkdir()
    path = tmp_path / ".signalbox" / "local.json"
    path.write_text(json.dumps(LOCAL | changed))
    monkeypatch.setattr(os, "getuid", lambda: path.stat().st_uid + owner)
    if owner and not path.stat().st_uid:
        os.chown(path, owner + 1, -1)

    with pytest.raises(RejectedError, match=problem):
        find_deployment(folder=tmp_path)


@pytest.mark.parametrize(
    ("version", "said"),
    [(__version__, ""), ("0.1.0", "· the local stage of {} has version 0.1.0, this command {}: use the same, or ")],
    ids=["same", "other"],
)
def test_a_stage_of_another_version_than_the_command_is_named(tmp_path, capsys, version, said):
    (tmp_path / ".signalbox").mkdir()
    local = {**LOCAL, "outputs": {"Version": version}}
    (tmp_path / ".signalbox" / "local.json").write_text(json.dumps(local))

    for _ in range(2):
        find_deployment(folder=tmp_path)

    err = capsys.readouterr().err
    assert err.startswith(said.format(tmp_path, __version__))
    assert err.count("\n") == bool(said)


def test_messages_name_a_stage_by_its_folder_or_by_account_and_region(tmp_path):
    outputs = {"StateTableArn": "arn:aws:dynamodb:eu-west-1:123456789012:table/State"}

    assert local_deployment(LOCAL, folder=tmp_path / ".signalbox").place == f"the local stage of {tmp_path}"
    prod = AwsDeployment(outputs, "eu-west-1", "", stage="prod")
    assert prod.place == "stage prod in account 123456789012, eu-west-1"


def test_the_error_without_a_running_stage_names_make_up_and_the_option_aws(tmp_path):
    with pytest.raises(RejectedError, match=r"`make up` .* --aws"):
        find_deployment(folder=tmp_path)


def test_the_name_of_a_stage_needs_the_option_aws(tmp_path):
    with pytest.raises(RejectedError, match="--stage prod names a stage in AWS: give --aws too"):
        find_deployment(stage="prod", folder=tmp_path)


def test_a_mistyped_stage_is_answered_with_the_nearest_and_its_region(aws):  # noqa: F811
    with serving({}, []), pytest.raises(RejectedError) as refusal:
        find_deployment(aws=True, stage="signalbx")

    first, second = str(refusal.value).splitlines()
    assert first == "stage 'signalbx' is not deployed in region 'us-east-1'; did you mean 'signalbox'?"
    assert second.startswith("the region is that of AWS_REGION, AWS_DEFAULT_REGION or the profile")


def test_a_stack_that_is_no_stage_is_not_suggested(aws):  # noqa: F811
    boto3.client("cloudformation").create_stack(
        StackName="signalbo", TemplateBody='{"Resources": {"Topic": {"Type": "AWS::SNS::Topic"}}}'
    )

    with pytest.raises(RejectedError, match=r"'us-east-1'\nthe region is that of"):
        find_deployment(aws=True)


def test_a_caller_who_may_not_list_stages_gets_no_suggestion(aws, monkeypatch):  # noqa: F811
    def refuse(*_: object, **__: object) -> object:
        raise ClientError({"Error": {"Code": "AccessDenied"}}, "DescribeStacks")

    monkeypatch.setattr("botocore.paginate.PageIterator.__iter__", refuse)

    with pytest.raises(RejectedError, match=r"'us-east-1'\nthe region is that of"):
        find_deployment(aws=True)


def test_programs_reach_the_local_stage_by_their_environment():
    found = local_deployment(LOCAL, folder=FOLDER).program_environment(
        {"HOME": "/h", "AWS_PROFILE": "prod", "AWS_SESSION_TOKEN": "t"}
    )

    assert found == {
        "HOME": "/h",
        "AWS_ENDPOINT_URL": "http://127.0.0.1:4566",
        "AWS_REGION": "eu-west-1",
        "AWS_DEFAULT_REGION": "eu-west-1",
        "AWS_ACCESS_KEY_ID": "AKIA1",
        "AWS_SECRET_ACCESS_KEY": "hidden",
    }


@pytest.mark.parametrize(
    "found", [local_deployment(LOCAL, folder=FOLDER), AwsDeployment({}, "eu-west-1", "")], ids=["local", "AWS"]
)
def test_programs_with_an_endpoint_and_those_of_a_stage_in_aws_keep_their_environment(found):
    given = {"AWS_PROFILE": "prod", **({"AWS_ENDPOINT_URL": "http://x"} if isinstance(found, LocalDeployment) else {})}

    assert found.program_environment(given) == given


def test_clients_of_a_local_stage_call_its_emulator():
    client = local_deployment(LOCAL, folder=FOLDER).session().client("sqs")

    assert client.meta.endpoint_url == "http://127.0.0.1:4566"
    assert client.meta.region_name == "eu-west-1"


def test_the_representation_of_a_deployment_has_no_keys():
    assert "hidden" not in repr(local_deployment(LOCAL, folder=FOLDER))


def test_the_printed_stage_has_no_keys_and_no_tickets():
    public = local._public({"page_url": "http://x/", "admin_credentials": {}, "live_users": [{"ticket": "hidden"}]})

    assert public == {"page_url": "http://x/"}


@pytest.mark.parametrize(
    ("error", "status", "printed"),
    [
        (RejectedError("one\ntwo"), 2, "error: one\n  two\n"),
        (UnavailableError("not ready"), 1, "error: not ready\n"),
        (OSError(errno.ENOSPC, "Full", "/a/b"), 1, "error: Full: /a/b; free some space on that disk\n"),
        (PermissionError(errno.EACCES, "No"), 1, "error: No: a file; this user must be allowed to write there\n"),
    ],
    ids=["rejected", "unavailable", "full-disk", "protected-folder"],
)
def test_an_error_is_printed_on_stderr_with_an_exit_status(monkeypatch, capsys, error, status, printed):
    def fail(**_options: object) -> None:
        raise error

    monkeypatch.setattr(main, "app", fail)

    with pytest.raises(SystemExit) as ended:
        main.main()

    assert ended.value.code == status
    assert capsys.readouterr().err == printed


def test_an_error_of_files_that_no_user_can_mend_is_raised(monkeypatch):
    def fail(**_options: object) -> None:
        raise FileNotFoundError(errno.ENOENT, "missing")

    monkeypatch.setattr(main, "app", fail)

    with pytest.raises(FileNotFoundError):
        main.main()


def run(monkeypatch, capsys, *words: str) -> tuple[object, str, str]:
    """Run the command line; return its exit status and what it prints."""
    monkeypatch.setattr(sys, "argv", ["signalbox", *words])
    with pytest.raises(SystemExit) as ended:
        main.main()
    printed = capsys.readouterr()
    return ended.value.code, printed.out, printed.err


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("statsu",), "No such command 'statsu'. Did you mean 'status'?"),
        (("user", "add", "bob", "--role", "sorce"), "'subscriber'; did you mean 'source'?"),
        (("user", "add", "bob", "--role", "boss"), "'boss' is not one of 'admin', 'feeder', 'source', 'subscriber'"),
        (("tail", "x", "--match", "wild"), "did you mean 'wildcard'?"),
        (("rendezvous", "proxy", "--rounds", "x"), "Invalid value for '--rounds': expected a whole number"),
        (("rendezvous", "stats", "--dya", "x"), "No such option: --dya; did you mean '--day'?"),
        (("tail", "x", "--realm", "y"), "No such option: --realm"),
        (("split", "tail", "x", "--max", "1"), "No such option: --max"),
        (("publish",), "Missing argument 'EXCHANGE'"),
        (("split", "audit"), "Missing argument 'MESSAGE_ID'"),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_a_mistyped_command_is_answered_in_one_line_with_the_nearest_word(monkeypatch, capsys, words, error):
    status, out, err = run(monkeypatch, capsys, *words)

    assert (status, out) == (2, "")
    first, hint = err.splitlines()
    assert first.startswith("error: ")
    assert first.endswith(error)
    assert "Value error" not in first
    assert hint.endswith("--help` shows the options")


@pytest.mark.parametrize("option", ["--aws", "--stage", "--json"])
def test_an_option_of_a_stage_comes_after_the_command(monkeypatch, capsys, option):
    status, _, err = run(monkeypatch, capsys, option, "status")

    assert status == 2
    assert err.splitlines()[1] == f"  give {option} after the command: `signalbox COMMAND … {option}`"


def test_a_file_that_is_not_there_is_named_once(monkeypatch, capsys, tmp_path):
    file = str(tmp_path / "none.json")

    status, _, err = run(monkeypatch, capsys, "exchange", "match", "--bindings", file)

    assert (status, err) == (2, f"error: cannot read {file!r}: No such file or directory\n")


def test_a_node_of_the_past_is_not_announced_in_bytes(tmp_path):
    """The settings are read with the CDK, whose jsii warns about the version of Node."""
    program = (
        "from signalbox.cli.main import main; import sys; sys.argv[1:] = ['doctor', '-c', 'poll_budget=1']; main()"
    )

    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False)  # noqa: S603 - our own interpreter

    assert done.returncode == 2
    begin, error = done.stderr.splitlines()
    assert begin == "· examining the credentials and the account"
    assert error.startswith("error: 'poll_budget' is not a setting; did you mean 'poll_budget_")


@pytest.mark.parametrize("words", [(), ("local",)], ids=" ".join)
def test_a_group_without_a_command_prints_its_help(monkeypatch, capsys, words):
    status, out, err = run(monkeypatch, capsys, *words)

    assert status == 2
    assert "Usage: signalbox" in out + err
    assert "error:" not in err


@pytest.mark.parametrize("words", [("-h",), ("queue", "-h"), ("queue", "delete", "-h")], ids=" ".join)
def test_every_command_has_the_short_option_for_help(monkeypatch, capsys, words):
    status, out, _ = run(monkeypatch, capsys, *words)

    assert not status
    assert "Usage: signalbox" in out


@pytest.mark.parametrize("words", sorted(leaves()), ids=" ".join)
def test_no_help_cuts_a_word_on_a_narrow_terminal(words):
    shown = CliRunner(env={"TERMINAL_WIDTH": "80", "COLUMNS": "80"}).invoke(app, [*words, "--help"]).output

    assert re.findall(r"\S+…", shown) == []


@pytest.mark.parametrize("words", sorted(leaves()), ids=" ".join)
def test_no_help_takes_text_for_markup(words):
    """Rich would show a text in square brackets as a style, that is, not at all."""
    shown = CliRunner(env={"TERMINAL_WIDTH": "500", "COLUMNS": "500"}).invoke(app, [*words, "--help"]).output
    command: Any = reduce(lambda group, word: group.commands[word], words, get_command(app))

    helps = [parameter.help for parameter in command.params if getattr(parameter, "help", None)]
    assert [text for text in helps if text not in " ".join(shown.split())] == []


def test_a_shell_completes_commands_and_options():
    environment = {"_SIGNALBOX_COMPLETE": "complete_bash", "COMP_WORDS": "signalbox queue de", "COMP_CWORD": "2"}
    program = "from signalbox.cli.main import main; import sys; sys.argv = ['signalbox']; main()"

    done = subprocess.run(  # noqa: S603 - our own interpreter
        [sys.executable, "-c", program],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.stdout.split() == ["declare", "delete"]


def test_an_error_of_aws_is_explained(monkeypatch, capsys):
    def fail(**_options: object) -> None:
        raise NoCredentialsError

    monkeypatch.setattr(main, "app", fail)

    status, _, err = run(monkeypatch, capsys)

    assert status == 1
    assert err.startswith("error: there are no AWS credentials: set AWS_PROFILE")


def test_an_interrupted_command_has_exit_status_130(monkeypatch):
    def interrupted(*_arguments: object, **_options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("signalbox.local.stage.down", interrupted)
    monkeypatch.setattr(sys, "argv", ["signalbox", "local", "down", "--yes"])

    with pytest.raises(SystemExit) as ended:
        main.main()

    assert ended.value.code == 130


def test_an_interrupt_while_the_command_is_imported_has_no_traceback():
    program = """
import importlib.abc, sys
from signalbox.cli import run
class Interrupting(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        raise KeyboardInterrupt
sys.meta_path.insert(0, Interrupting())
run()
"""

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)  # noqa: S603 - our own interpreter

    assert (done.returncode, done.stderr) == (130, "")


def test_a_second_interrupt_ends_work_that_does_not_end(monkeypatch):
    """Such as a wait for a stage that does not respond."""

    def work(*_arguments: object, **_options: object) -> None:
        with Ending().awaited():
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.01)  # continues
            os.kill(os.getpid(), signal.SIGINT)
            pytest.fail("the second signal did not end the work")

    monkeypatch.setattr("signalbox.local.stage.down", work)
    monkeypatch.setattr(sys, "argv", ["signalbox", "local", "down", "--yes"])

    with pytest.raises(SystemExit) as ended:
        main.main()

    assert ended.value.code == 130


def test_help_imports_no_package_that_only_commands_need():
    probe = (
        "import sys, signalbox.cli.main; "
        "print([name for name in ('boto3', 'botocore', 'aws_cdk', 'pyspark') if name in sys.modules])"
    )

    loaded = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)  # noqa: S603 - our own interpreter

    assert loaded.stdout.strip() == "[]"
