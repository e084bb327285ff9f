"""Live: its queues, its APIs, and the effect of settings."""

import json

from tests.infrastructure.templates import Templates, templates


def routes(stage: Templates) -> dict[str, dict]:
    """Return the integration of each route of the WebSocket API."""
    integrations = {
        key: resource["Properties"]
        for key, resource in stage.stage["Resources"].items()
        if resource["Type"] == "AWS::ApiGatewayV2::Integration"
    }
    return {
        route["Properties"]["RouteKey"]: integrations[route["Properties"]["Target"]["Fn::Join"][1][1]["Ref"]]
        for name, route in stage.every("AWS::ApiGatewayV2::Route").items()
        if name.startswith("Live/Connections/")
    }


def test_frames_go_into_the_inbox_without_a_function(stage):
    frames = routes(stage)["$default"]

    assert frames["IntegrationType"] == "AWS"
    assert "sqs:path/" in json.dumps(frames["IntegrationUri"])


def test_a_function_is_called_when_a_connection_opens_and_closes(stage):
    for route in ("$connect", "$disconnect"):
        assert "LiveConnect" in json.dumps(routes(stage)[route]["IntegrationUri"])


def test_only_the_emulator_has_a_function_before_the_inbox(stage):
    local = templates(local=True)

    assert "Live/Receive" not in stage.every("AWS::Lambda::Function")
    assert "LiveReceive" in json.dumps(routes(local)["$default"]["IntegrationUri"])


def test_connections_keep_their_order_in_every_queue(stage):
    queues = stage.every("AWS::SQS::Queue")

    for name in ("Inbox", "Outbox", "OverviewCalls"):
        assert queues[f"Live/{name}"]["Properties"]["DeduplicationScope"] == "messageGroup", name
    assert {name for name, queue in queues.items() if queue["Properties"].get("FifoQueue")} >= {
        *("Live/Inbox", "Live/Outbox", "Live/OverviewCalls", "Live/OrderedDeadLetters")
    }


def test_times_and_names_follow_from_the_settings(otherwise):
    queues = otherwise.every("AWS::SQS::Queue")

    for name, called in (
        ("Inbox", "trial-live-inbox.fifo"),
        ("Outbox", "trial-live-outbox.fifo"),
        ("Timers", "trial-live-timers"),
    ):
        queue = queues[f"Live/{name}"]["Properties"]
        assert (queue["QueueName"], queue["VisibilityTimeout"]) == (called, 60)
    mappings = otherwise.every("AWS::Lambda::EventSourceMapping")
    for name in ("Session/Inbox", "Session/Timers", "Overview/OverviewCalls", "Deliver/Outbox"):
        assert mappings[f"Live/{name}"]["Properties"]["ScalingConfig"] == {"MaximumConcurrency": 13}
    for name in ("Connect", "Session", "Overview", "Deliver"):
        assert otherwise.every("AWS::Lambda::Function")[f"Live/{name}"]["Properties"]["Timeout"] == 20


def test_the_query_of_a_connection_is_in_no_log_of_api_gateway(stage):
    """Clients of Arvados send their token in it: https://docs.aws.amazon.com/apigateway/latest/developerguide/websocket-api-logging.html"""
    (name,) = (name for name in stage.every("AWS::ApiGatewayV2::Stage") if name.startswith("Live/Connections/"))
    properties = stage.every("AWS::ApiGatewayV2::Stage")[name]["Properties"]
    settings = [properties["DefaultRouteSettings"], *properties.get("RouteSettings", {}).values()]

    assert "AccessLogSettings" not in properties
    assert all(one.get("LoggingLevel", "OFF") == "OFF" for one in settings)
    assert not any(one.get("DataTraceEnabled") for one in settings)
