"""The concurrent executions that the settings need, against the synthesized templates."""

import sys

from signalbox.doctor.rules import END_OF_SUPPORT
from stacks.settings.context import read_config
from stacks.settings.needs import needs
from stacks.shared import packaging
from tests.infrastructure.other_settings import OTHERWISE
from tests.infrastructure.templates import templates


def test_the_mappings_of_the_templates_are_those_that_the_settings_need(otherwise):
    needed = needs(read_config(OTHERWISE))
    found = otherwise.every("AWS::Lambda::EventSourceMapping").values()

    maxima = [mapping["Properties"]["ScalingConfig"]["MaximumConcurrency"] for mapping in found]
    assert (needed.mappings, needed.polled) == (len(maxima), sum(maxima))


def test_the_reserved_executions_are_those_of_the_templates(otherwise):
    functions = otherwise.every("AWS::Lambda::Function").values()

    reserved = sum(function["Properties"].get("ReservedConcurrentExecutions", 0) for function in functions)
    assert needs(read_config(OTHERWISE)).reserved == reserved > 0


def test_the_functions_run_on_a_python_whose_end_of_support_is_known(stage):
    runtimes = {function["Properties"]["Runtime"] for function in stage.every("AWS::Lambda::Function").values()}
    local = templates(local=True).every("AWS::Lambda::Function").values()

    assert runtimes == {f"python{packaging.LAMBDA_PYTHON}"} == {f"python{python}" for python in END_OF_SUPPORT}
    assert {function["Properties"]["Runtime"] for function in local} == {
        f"python{sys.version_info.major}.{sys.version_info.minor}"
    }
