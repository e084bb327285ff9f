"""The parts of the local stage that need no emulator: files, routes, errors, tools."""

import os

import pytest

from signalbox.errors import RejectedError, UnavailableError
from signalbox.local import cdk, check, stage, tools
from signalbox.local.emulator.lifecycle import Credentials, Emulator
from signalbox.local.files import read_json, write_json
from signalbox.local.stage_folder import StageFolder


def test_a_file_with_keys_is_readable_by_its_owner_alone_and_leaves_nothing_beside_it(tmp_path):
    write_json(tmp_path / "local.json", {"a": 1})

    assert (tmp_path / "local.json").stat().st_mode & 0o777 == 0o600
    assert os.listdir(tmp_path) == ["local.json"]  # noqa: PTH208 - names are what is compared
    assert read_json(tmp_path / "local.json") == {"a": 1}


def test_a_file_that_is_not_there_holds_nothing(tmp_path):
    assert read_json(tmp_path / "local.json") is None


def test_each_deployed_api_gets_its_prefix():
    assert stage.api_routes({"RendezvousApiId": "abc"}) == {"rendezvous": "/_aws/execute-api/abc/$default"}
    assert stage.api_routes({"LivePageApiId": "def", "LiveWebSocketApiId": "ghi"}) == {
        "live": "/_aws/execute-api/def/$default/live",
        "live-ws": "/_aws/execute-api/ghi/live",
    }
    assert stage.api_routes({}) == {}


def test_what_the_app_says_about_a_setting_is_all_that_is_said():
    error = cdk._synthesis_error(["error: unknown setting 'stge'; did you mean 'stage'?", "Subprocess exited with 2"])

    assert isinstance(error, RejectedError)
    assert str(error) == "unknown setting 'stge'; did you mean 'stage'?"


def test_an_app_that_breaks_is_shown_in_full():
    error = cdk._synthesis_error(["Traceback (most recent call last):", "KeyError: 'x'"])

    assert isinstance(error, UnavailableError)
    assert "KeyError: 'x'" in str(error)


@pytest.mark.parametrize(
    ("printed", "expected"),
    [("v24.19.0", 24), ('openjdk version "17.0.9" 2023-10-17', 17), ("no version here", None)],
    ids=["node", "java", "neither"],
)
def test_a_tools_major_version_is_read_from_what_it_prints(printed, expected):
    assert tools._major(["echo", printed]) == expected


def test_a_tool_that_is_not_there_has_no_version():
    assert tools._major(["/nowhere/java", "-version"]) is None


def test_nothing_of_the_users_aws_settings_reaches_the_tools():
    environment = tools.hermetic_environment({"AWS_PROFILE": "theirs", "HOME": "/home/x", "PATH": "/bin"})

    assert "AWS_PROFILE" not in environment
    assert environment["HOME"] == "/home/x"


def test_only_one_command_changes_a_stage_at_a_time(tmp_path):
    stage_folder = StageFolder(tmp_path)

    with (
        stage._locked(stage_folder),
        pytest.raises(RejectedError, match="another command"),
        stage._locked(stage_folder),
    ):
        pass


RUNNING = Emulator(4601, "instance-1", "us-east-1", Credentials("AKIA1", "hidden"))


@pytest.mark.parametrize(
    ("port", "fresh", "expected"), [(None, False, 4601), (4601, False, 4601), (None, True, 4601), (4602, True, 4602)]
)
def test_a_running_stage_keeps_its_port_unless_a_fresh_one_is_wanted(tmp_path, port, fresh, expected):
    stage_folder = StageFolder(tmp_path)

    assert stage._chosen_port(stage_folder, RUNNING, port=port, region="us-east-1", fresh=fresh) == expected


@pytest.mark.parametrize(("port", "region"), [(4602, "us-east-1"), (None, "eu-west-1")], ids=["port", "region"])
def test_a_running_stage_is_not_thrown_away_without_being_asked(tmp_path, port, region):
    with pytest.raises(RejectedError, match=r"the stage runs .* --fresh"):
        stage._chosen_port(StageFolder(tmp_path), RUNNING, port=port, region=region, fresh=False)


def test_what_pytest_counted_is_shown_and_nothing_that_only_looks_like_it():
    def closing(output: str) -> str:
        return check._closing_line(check.Result("tests", passed=True, output=output, seconds=1))

    assert closing("....\n12 passed, 3 deselected in 0.51s\n") == ": 12 passed, 3 deselected in 0.51s"
    assert closing("=== 1 failed, 11 passed in 0.51s ===\n") == ": 1 failed, 11 passed in 0.51s"
    assert closing("All checks passed!\n") == ""


def test_a_check_stops_at_the_first_command_that_fails_and_keeps_what_was_printed():
    commands = (("echo", "one"), ("sh", "-c", "echo two; exit 3"), ("echo", "three"))

    result = check.run(check.Check("all", commands), {"PATH": os.defpath})

    assert not result.passed
    assert result.output == "one\ntwo\n"
