"""Functions in templates of SAM and CDK."""

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from signalbox.clients.splitting.handler.settings import FunctionSettings
from signalbox.clients.splitting.handler.template import InvalidTemplate, template_function

CDK: dict[str, Any] = json.loads(Path(__file__).with_name("cdk_template.json").read_text())


@pytest.mark.parametrize("resource", ["ConsumerA1", "Memes/Consumer"])
def test_a_function_is_found_by_its_id_or_construct_path(resource):
    function = template_function(CDK, resource)

    assert function.variables == {"STAGE": "test", "LIMIT": "5", "DEBUG": "true"}
    assert (function.timeout_seconds, function.memory_mb) == (30, None)
    assert function.unresolved == ("TABLE", "MemorySize")


def test_a_mapping_is_found_by_its_queues_name():
    function = template_function(CDK, "ConsumerA1")

    memes, orders = function.mapping("memes"), function.mapping("orders")
    assert memes is not None
    assert (memes.batch_size, memes.window) == (7, timedelta())
    assert orders is not None
    assert orders.batch_size == 8  # the only one whose queue has no name


def test_a_mapping_on_a_queue_of_another_name_is_not_used():
    assert template_function(CDK, "OtherC3").mapping("memes") is None


def test_a_templates_values_replace_deployed_ones_and_references_keep_them():
    deployed = FunctionSettings("f", "arn", memory_mb=512, environment={"TABLE": "real", "STAGE": "live"})

    settings = template_function(CDK, "ConsumerA1").applied_to(deployed)

    assert (settings.timeout, settings.memory_mb) == (timedelta(seconds=30), 512)
    assert settings.environment == {"TABLE": "real", "STAGE": "test", "LIMIT": "5", "DEBUG": "true"}


def test_a_sam_function_has_the_globals_and_its_own_events():
    template = {
        "Globals": {"Function": {"Timeout": 20, "Environment": {"Variables": {"STAGE": "test", "OWN": "no"}}}},
        "Resources": {
            "Consumer": {
                "Type": "AWS::Serverless::Function",
                "Properties": {
                    "Environment": {"Variables": {"OWN": "yes"}},
                    "Events": {
                        "Memes": {
                            "Type": "SQS",
                            "Properties": {"Queue": "arn:aws:sqs:us-east-1:1:memes", "BatchSize": 3},
                        },
                        "Daily": {"Type": "Schedule"},
                    },
                },
            }
        },
    }

    function = template_function(template, None)

    assert (function.variables, function.timeout_seconds) == ({"STAGE": "test", "OWN": "yes"}, 20)
    settings = function.mapping("memes")
    assert settings is not None
    assert settings.batch_size == 3


@pytest.mark.parametrize(
    ("template", "resource", "problem"),
    [
        ([], None, "no `Resources`"),
        ({"Resources": []}, None, "no `Resources`"),
        ({"Resources": {}}, None, "has none; give --resource with one of: no functions"),
        (CDK, None, r"several functions; give --resource with one of: ConsumerA1 \(Memes/Consumer\), OtherC3"),
        (CDK, "MemesD4", "no function 'MemesD4'"),
    ],
)
def test_a_function_that_is_not_defined_is_refused_with_those_that_are(template, resource, problem):
    with pytest.raises(InvalidTemplate, match=problem):
        template_function(template, resource)
