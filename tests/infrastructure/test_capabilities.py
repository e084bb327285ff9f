"""Templates of stages with some of the capabilities: what each has, and that nothing of the others is left."""

import json
from itertools import combinations

import pytest

from stacks.settings.choices import CAPABILITIES
from stacks.settings.context import read_config
from stacks.settings.needs import needs
from tests.infrastructure.templates import Templates, templates
from tests.infrastructure.test_handlers import POWERTOOLS
from tests.infrastructure.test_resources import DOORS

# Each alone, live with exchange among them; the pairs are left to `make release`.
SETS = [
    *((one,) for one in CAPABILITIES),
    *(pytest.param(pair, marks=pytest.mark.release) for pair in combinations(CAPABILITIES, 2)),
]
TABLES = {
    "rendezvous": {"Rendezvous", "Leases"},
    "splitting": {"Splits"},
    "exchange": {"Exchanges"},
    "live": {"Live"},
    "history": set(),
}


def brought(chosen: tuple[str, ...]) -> set[str]:
    return {*chosen, *(("exchange",) if "live" in chosen else ())}


def stage_of(chosen: tuple[str, ...], **settings: str) -> Templates:
    return templates(capabilities=",".join(chosen), **settings)


@pytest.mark.parametrize("chosen", SETS, ids="-".join)
def test_a_stage_has_the_functions_and_the_data_of_its_capabilities_alone(chosen, stage):
    found, parts = stage_of(chosen), brought(chosen)
    handlers = {one["Properties"]["Handler"].split(".")[1] for one in found.every("AWS::Lambda::Function").values()}

    assert handlers == parts
    assert set(found.every("AWS::DynamoDB::Table")) == set().union(*(TABLES[part] for part in parts))
    assert bool(found.every("AWS::S3::Bucket")) == bool(found.every("AWS::Glue::Job")) == ("history" in parts)
    assert found.stage["Outputs"]["Capabilities"]["Value"].split(",") == [one for one in CAPABILITIES if one in parts]
    assert found.stage["Resources"].keys() <= stage.stage["Resources"].keys()
    assert found.state["Resources"].keys() <= stage.state["Resources"].keys()


@pytest.mark.parametrize("chosen", SETS, ids="-".join)
def test_functions_lack_variables_of_other_capabilities_only(chosen, stage):
    found, parts = stage_of(chosen), brought(chosen)
    whole = stage.every("AWS::Lambda::Function")

    missing = set()
    for name, function in found.every("AWS::Lambda::Function").items():
        variables = set(function["Properties"]["Environment"]["Variables"])
        missing |= set(whole[name]["Properties"]["Environment"]["Variables"]) - variables
        assert variables > POWERTOOLS
    assert {of_capability(name) for name in missing} <= set(CAPABILITIES) - parts


def of_capability(variable: str) -> str:
    if variable.startswith(("HISTORY_", "KEPT_", "QUERY_")):
        return "history"
    return {"RENDEZVOUS_TABLE": "rendezvous", "SPLIT_TABLE": "splitting"}.get(variable, "live")


@pytest.mark.parametrize("chosen", SETS, ids="-".join)
def test_the_needs_are_those_of_the_capabilities(chosen):
    mappings = stage_of(chosen).every("AWS::Lambda::EventSourceMapping").values()
    functions = stage_of(chosen).every("AWS::Lambda::Function").values()
    needed = needs(read_config({"capabilities": ",".join(chosen)}))

    maxima = [one["Properties"]["ScalingConfig"]["MaximumConcurrency"] for one in mappings]
    reserved = sum(one["Properties"].get("ReservedConcurrentExecutions", 0) for one in functions)
    assert (needed.mappings, needed.polled, needed.reserved) == (len(maxima), sum(maxima), reserved)


def test_a_capability_that_was_taken_away_keeps_its_data_and_the_exports_that_its_functions_import(stage):
    found = stage_of(("exchange",), kept_capabilities="rendezvous,splitting,live,history")

    kept, whole = (one.state["Resources"] for one in (found, stage))
    assert kept.keys() == whole.keys()
    # Those of the doors name the stream of events, which is gone, and their layer has fewer packages.
    changed = {name for name in kept if kept[name] != whole[name]}
    assert all(name.startswith(("Doors", "Packages")) for name in changed)
    assert found.state["Outputs"] == stage.state["Outputs"]
    assert {*found.every("AWS::Lambda::Function")} == {"Exchange/Route", "Exchange/Control", *DOORS}
    assert not found.every("AWS::Lambda::Permission")


def test_the_setting_is_recorded_with_what_it_brings():
    outputs = stage_of(("live",)).stage["Outputs"]

    assert outputs["Capabilities"]["Value"] == "exchange,live"
    assert json.loads(outputs["Settings"]["Value"]) == {"capabilities": "live"}
