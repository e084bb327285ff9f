"""Generated names last as long as their stack."""

import json
from contextvars import ContextVar

import pytest

from signalbox.local.emulator.patches.physical_names import with_stack_ids

FIRST, SECOND = {"StackId": "stack/one"}, {"StackId": "stack/two"}


def test_a_stack_that_is_created_again_has_other_names():
    seed, stacks = ContextVar("seed", default=""), {"trial": FIRST}
    name = with_stack_ids(lambda stack, logical, **_: f"{stack}-{logical}-{seed.get()}", seed, stacks)

    first, again = (name("trial", "Route", max_len=64) for _ in range(2))
    stacks["trial"] = SECOND

    assert first == again == "trial-Route-stack/one"
    assert name("trial", "Route") == "trial-Route-stack/two"
    assert seed.get() == ""


@pytest.mark.parametrize("stack", ["trial", "unknown"])
def test_replaced_resources_and_unknown_stacks_are_named_as_before(stack: str):
    seed = ContextVar("seed", default="")
    seed.set("replaced" if stack == "trial" else "")
    name = with_stack_ids(lambda stack, _: f"{stack}-{seed.get()}", seed, {"trial": FIRST})

    assert name(stack, "Route") == f"{stack}-{seed.get()}"


@pytest.mark.emulator
@pytest.mark.release
def test_a_function_of_a_redeployed_stack_has_another_name(running):
    cloudformation = running.session().client("cloudformation")
    template = json.dumps(
        {"Resources": {"Queue": {"Type": "AWS::SQS::Queue"}}, "Outputs": {"Url": {"Value": {"Ref": "Queue"}}}}
    )
    urls = []
    for _ in range(2):
        cloudformation.create_stack(StackName="again", TemplateBody=template)
        cloudformation.get_waiter("stack_create_complete").wait(StackName="again", WaiterConfig={"Delay": 1})
        (stack,) = cloudformation.describe_stacks(StackName="again")["Stacks"]
        urls.append(stack["Outputs"][0]["OutputValue"])
        cloudformation.delete_stack(StackName="again")
        cloudformation.get_waiter("stack_delete_complete").wait(StackName="again", WaiterConfig={"Delay": 1})

    assert urls[0] != urls[1]
