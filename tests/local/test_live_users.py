"""The users of the local stage's realm keep their tickets as long as the stage is the same."""

import boto3

from signalbox.local.live_users import live_users
from tests.cli.shared.stage import serving
from tests.fakes.aws import aws, exchange_table  # noqa: F401 - fixtures


def test_users_keep_their_tickets_unless_the_stage_is_another(exchange_table):  # noqa: F811
    session = boto3.Session(region_name="us-east-1")
    control = session.client("sqs").create_queue(QueueName="signalbox-exchange-control")["QueueUrl"]
    outputs = {"ExchangeControlQueueUrl": control, "ExchangePrefix": "", "ExchangeTable": exchange_table.name}
    outputs["LiveTable"] = "first"
    with serving(outputs, [control]) as stage:
        stage.replies |= dict.fromkeys(("declare_exchange", "grant", "secret"), lambda _: {})
        users = live_users(session, outputs, known={})
        local = {"live_users": users, "outputs": outputs}

        assert live_users(session, outputs, known=local) == users
        others = live_users(session, {**outputs, "LiveTable": "second"}, known=local)

    assert not {user["ticket"] for user in others} & {user["ticket"] for user in users}
    assert stage.commands.count("secret") == 2 * len(users)
