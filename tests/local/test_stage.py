"""The parts of the local stage that need no emulator: files, routes, errors and tools."""

import os
from types import SimpleNamespace

import pytest

from signalbox.errors import RejectedError, UnavailableError
from signalbox.local import cdk, files, stage, tools
from signalbox.local.emulator.lifecycle import Credentials, Emulator
from signalbox.local.files import read_json, write_json
from signalbox.local.stage_folder import StageFolder


def test_a_json_file_is_readable_by_its_owner_only_and_leaves_no_temporary_file(tmp_path):
    write_json(tmp_path / "local.json", {"a": 1})

    assert (tmp_path / "local.json").stat().st_mode & 0o777 == 0o600
    assert os.listdir(tmp_path) == ["local.json"]  # noqa: PTH208 - names are what is compared
    assert read_json(tmp_path / "local.json") == {"a": 1}


def test_a_missing_file_is_read_as_none(tmp_path):
    assert read_json(tmp_path / "local.json") is None


def test_each_deployed_api_has_its_path_prefix():
    url = "https://{}.us-east-1.{}/"
    outputs = {
        "RendezvousApiId": "abc",
        "RendezvousUrl": url.format("def.lambda-url", "on.aws"),
        "RendezvousClientsUrl": url.format("abc.execute-api", "amazonaws.com"),
    }

    assert stage.api_routes(outputs) == {
        "rendezvous": "/_aws/lambda-url/def",
        "rendezvous-api": "/_aws/execute-api/abc/$default",
        "rendezvous-clients": "/_aws/execute-api/abc/$default",
    }
    assert stage.api_routes({"LivePageApiId": "def", "LiveWebSocketApiId": "ghi"}) == {
        "live": "/_aws/execute-api/def/$default/live",
        "live-ws": "/_aws/execute-api/ghi/live",
    }
    assert stage.api_routes({}) == {}


def test_an_invalid_setting_is_reported_with_the_apps_message_alone():
    error = cdk._synthesis_error(["error: unknown setting 'stge'; did you mean 'stage'?", "Subprocess exited with 2"])

    assert isinstance(error, RejectedError)
    assert str(error) == "unknown setting 'stge'; did you mean 'stage'?"


def test_another_error_of_the_app_is_reported_in_full():
    error = cdk._synthesis_error(["Traceback (most recent call last):", "KeyError: 'x'"])

    assert isinstance(error, UnavailableError)
    assert "KeyError: 'x'" in str(error)


@pytest.mark.parametrize(
    ("printed", "expected"),
    [
        ("v24.19.0", (24, 19)),
        ('openjdk version "17.0.9" 2023-10-17', (17, 0)),
        ('openjdk version "17" 2021-09-14', (17,)),
        ("go version go1.26.6 linux/amd64", (1, 26)),
        ("no version here", ()),
    ],
    ids=["node", "java", "the first Java", "go", "none"],
)
def test_a_tools_version_is_parsed_from_its_output(printed, expected):
    assert tools.version("echo", printed) == expected


def test_a_missing_tool_has_no_version():
    assert tools.version("/nowhere/java", "-version") == ()


def test_the_users_aws_settings_do_not_reach_the_tools():
    environment = tools.hermetic_environment({"AWS_PROFILE": "theirs", "HOME": "/home/x", "PATH": "/bin"})

    assert "AWS_PROFILE" not in environment
    assert environment["HOME"] == "/home/x"


def test_pythons_of_the_tools_compile_each_module_once():
    assert tools.NO_BYTECODE not in tools.hermetic_environment({tools.NO_BYTECODE: "1", "PATH": "/bin"})


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
def test_a_running_stage_keeps_its_port_unless_it_is_replaced(tmp_path, port, fresh, expected):
    stage_folder = StageFolder(tmp_path)

    assert stage._chosen_port(stage_folder, RUNNING, port=port, region="us-east-1", fresh=fresh) == expected


@pytest.mark.parametrize(("port", "region"), [(4602, "us-east-1"), (None, "eu-west-1")], ids=["port", "region"])
def test_a_running_stage_is_replaced_only_with_fresh(tmp_path, port, region):
    with pytest.raises(RejectedError, match=r"the stage runs .* --fresh"):
        stage._chosen_port(StageFolder(tmp_path), RUNNING, port=port, region=region, fresh=False)


FAULTY = Emulator(4601, "instance-1", "us-east-1", Credentials("AKIA1", "hidden"), 7)


@pytest.mark.parametrize(
    ("running", "given"), [(RUNNING, None), (FAULTY, None), (FAULTY, 7)], ids=["none", "kept", "the same"]
)
def test_a_running_stage_keeps_its_seed(running, given):
    assert stage._kept_faults(running, given) == running.faults


@pytest.mark.parametrize(
    ("running", "given", "present"),
    [(RUNNING, 7, "no fault injection"), (FAULTY, 8, "seed 7"), (FAULTY, 9, "seed 7")],
)
def test_another_seed_needs_a_new_stage(running, given, present):
    with pytest.raises(RejectedError, match=f"the stage runs with .*{present}.* --fresh"):
        stage._kept_faults(running, given)


def test_a_disk_that_is_nearly_full_is_refused_before_a_stage_starts(tmp_path, monkeypatch):
    full = SimpleNamespace(free=files.LEAST_FREE_BYTES - 1)
    monkeypatch.setattr(files.shutil, "disk_usage", lambda _folder: full)

    with pytest.raises(UnavailableError, match="has 499 MB free, and a local stage needs 500 MB: free some space"):
        files.require_disk_space(tmp_path / "stage")


def test_a_command_that_needs_the_cdk_is_refused_without_a_home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "missing"))

    with pytest.raises(RejectedError, match="set HOME to a folder that can be written"):
        files.require_checkout()
