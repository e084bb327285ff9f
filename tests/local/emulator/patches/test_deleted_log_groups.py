"""A log group that was deleted stays deleted, whatever its function does."""

import pytest

from tests.local.emulator.functions import invoke, make_function

GROUP = "of-a-stack"


@pytest.mark.emulator
@pytest.mark.release
def test_a_function_logs_only_while_its_log_group_exists(running):
    session = running.session()
    logs, functions = session.client("logs"), session.client("lambda")
    logs.create_log_group(logGroupName=GROUP)
    make_function(session, "last", "def handler(event, context):\n    print('here')\n")
    functions.update_function_configuration(FunctionName="last", LoggingConfig={"LogGroup": GROUP})

    invoke(session, "last")
    before = logs.filter_log_events(logGroupName=GROUP)["events"]
    logs.delete_log_group(logGroupName=GROUP)
    invoke(session, "last")

    assert "here" in {one["message"].strip() for one in before}
    assert logs.describe_log_groups(logGroupNamePrefix=GROUP)["logGroups"] == []
