"""A deployment keeps the settings that the stage has and the command leaves out, and names all that differ."""

import json
from dataclasses import replace

import boto3
import pytest

from signalbox import __version__
from signalbox.cli.doctor.settings import InvalidSettings
from signalbox.cli.shared import kept_settings
from signalbox.cli.shared.kept_settings import new_stage, plan_of_stage
from signalbox.errors import RejectedError
from signalbox.local import stage
from stacks.settings.clusters import KubernetesClusters
from stacks.settings.config import Config
from stacks.settings.context import read_config
from stacks.settings.record import defaults, recorded
from tests.fakes.aws import aws

__all__ = ["aws"]
LOCAL = stage.local_context([])


def plan(
    record: dict[str, str], *context: str, reset: tuple[str, ...] = (), place: tuple[str, ...] = ()
) -> kept_settings.SettingsPlan:
    return kept_settings.plan({"Settings": json.dumps(record)}, context, reset=reset, place=place)


def test_a_setting_that_the_command_leaves_out_is_kept():
    found = plan({"poll_budget_usd": "5", "exchange_prefix": "trial-"}, "offer_patience_seconds=60")

    assert found.context == ["poll_budget_usd=5", "exchange_prefix=trial-", "offer_patience_seconds=60"]
    assert found.lines == (
        "setting kept: exchange_prefix = trial-",
        "setting changed: offer_patience_seconds = 30 → 60",
        "setting kept: poll_budget_usd = 5",
    )


@pytest.mark.parametrize(
    ("context", "reset"), [(("poll_budget_usd=25",), ()), ((), ("poll_budget_usd",))], ids=["value", "reset"]
)
def test_a_setting_returns_to_its_default_only_when_it_is_named(context, reset):
    found = plan({"poll_budget_usd": "5"}, *context, reset=reset)

    assert found.context == list(context)
    assert found.lines == ("setting changed: poll_budget_usd = 5 → 25",)


def test_the_settings_are_those_of_the_stage_that_is_named_and_a_failed_first_deployment_has_none(aws):
    session, resources = boto3.Session(region_name="eu-west-1"), {"T": {"Type": "AWS::SNS::Topic"}}
    for name, outputs in (("first", {"Settings": {"Value": '{"exchange_prefix": "one-"}'}}), ("failed", {})):
        template = json.dumps({"Resources": resources, "Outputs": outputs})
        session.client("cloudformation").create_stack(StackName=name, TemplateBody=template)

    first, failed, missing = (
        plan_of_stage(lambda _: session, [f"stage={name}"], reset=()) for name in ("first", "failed", "missing")
    )

    assert first.lines == ("setting kept: exchange_prefix = one-",)
    assert (failed.context, failed.lines) == (["stage=failed"], ())
    assert (missing.context, missing.lines) == (["stage=missing"], ())


def test_the_same_settings_change_nothing():
    assert plan({"poll_budget_usd": "5"}, "poll_budget_usd=5").lines == ()
    assert plan({}).lines == ()


def test_a_deployment_of_another_version_names_both():
    found = kept_settings.plan({"Settings": "{}", "Version": "0.1.0"}, ())

    assert found.lines == (f"version changed: 0.1.0 → {__version__}",)


def test_settings_of_another_version_are_refused_by_name_until_they_are_reset():
    record = {"poll_hold_seconds": "5", "a_later_one": "1", "poll_budget_usd": "5"}

    with pytest.raises(InvalidSettings, match=r": a_later_one, poll_hold_seconds; `--reset a_later_one --reset poll_h"):
        plan(record)
    with pytest.raises(InvalidSettings, match="settings of the stage: poll_hold_seconds;"):
        plan(record, reset=("a_later_one",))
    found = plan(record, reset=("a_later_one", "poll_hold_seconds"))

    assert found.context == ["poll_budget_usd=5"]
    assert found.lines[0] == "setting changed: a_later_one = 1 → not set"


def test_a_kept_setting_that_contradicts_a_given_one_names_the_option(tmp_path):
    with pytest.raises(InvalidSettings, match=r"(?s)broker_queue_retention_seconds must.*kept from the stage: bro"):
        plan({"broker_queue_retention_seconds": "200"}, "offer_patience_seconds=300")
    with pytest.raises(InvalidSettings, match=r"(?s)names no file.*`--reset KEY`"):
        plan({"bridge_list_file": str(tmp_path / "gone")})


@pytest.mark.parametrize(
    ("reset", "problem"),
    [("poll_budget_us", "did you mean 'poll_budget_usd'"), ("stage", "is not"), ("reserve_concurrency", "contra")],
)
def test_only_settings_that_are_not_given_are_reset(reset, problem):
    for check in (new_stage, lambda context, reset: plan({}, *context, reset=reset)):
        with pytest.raises(InvalidSettings, match=problem):
            check(["reserve_concurrency=false"], reset=(reset,))


def test_a_local_stage_keeps_what_differs_from_the_settings_of_local_stages():
    config = read_config(dict(setting.split("=", 1) for setting in stage.local_context(["poll_budget_usd=5"])))

    first = plan(recorded(config), place=LOCAL)
    changed = plan(recorded(replace(config, split_concurrency=10)), place=LOCAL)
    given_back = plan(recorded(config), reset=("poll_budget_usd",), place=LOCAL)

    assert first.lines == ("setting kept: poll_budget_usd = 5",)
    assert stage.local_context(first.context) == [*LOCAL[:-1], "poll_budget_usd=5", "local=true"]
    assert "setting kept: split_concurrency = 10" in changed.lines
    assert given_back.lines == ("setting changed: poll_budget_usd = 5 → 25",)


def test_a_record_is_read_as_the_same_settings(tmp_path):
    bridges = tmp_path / "bridges.jsonl"
    bridges.touch()
    clusters = KubernetesClusters.read({"a": {"eks": "prod"}})
    config = Config(
        stage="trial",
        poll_budget_usd=5,
        reserve_concurrency=False,
        rendezvous_doors="api",
        retain_state=True,
        bridge_list_file=bridges,
        kubernetes_clusters=clusters,
    )

    assert read_config({"stage": "trial", **recorded(config)}) == config
    assert recorded(Config(stage="trial", region="eu-west-1", local=True)) == {}
    assert read_config(defaults()) == Config()


def test_a_capability_is_taken_away_only_after_a_yes_and_its_data_stays():
    outputs = {"Settings": json.dumps({"kept_capabilities": "splitting"}), "Capabilities": "rendezvous,exchange,live"}

    found = kept_settings.plan(outputs, ["capabilities=exchange"])

    assert found.taken_away == ["rendezvous", "live"]
    assert found.context[-1] == "kept_capabilities=splitting,rendezvous,live"
    with pytest.raises(
        RejectedError,
        match=r"This takes away rendezvous, live: .* bucket stay; no deny is in force",
    ):
        found.confirm(yes=False)
    found.confirm(yes=True)


def test_a_capability_is_added_without_a_question():
    outputs = {"Settings": json.dumps({"capabilities": "exchange"}), "Capabilities": "exchange"}

    found = kept_settings.plan(outputs, ["capabilities=exchange,history"])

    assert (found.taken_away, found.context) == ([], ["capabilities=exchange,history"])
    found.confirm(yes=False)
