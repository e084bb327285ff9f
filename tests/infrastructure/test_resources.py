"""Rules for all resources of a type, including resources that are added later."""

import json

import pytest

from tests.infrastructure.history.permissions import REPORTS, STARTED
from tests.infrastructure.templates import Templates, as_list, templates

FUNCTIONS = {f"Rendezvous/{name}" for name in ("Offer", "Poll", "Answer", "Client", "Page", "Sweep")}
FUNCTIONS |= {"Splitting/Split", "Splitting/Control", "Exchange/Route", "Exchange/Control"}
FUNCTIONS |= {"HistoryOverflow/Drain"} | {
    f"Live/{name}" for name in ("Connect", "Session", "Overview", "Deliver", "Page")
}
LIVE_QUEUES = ("Inbox", "Outbox", "Timers")
RETRIES = ("Retries", "OrderedRetries")
BATCHES = {
    "Rendezvous/Offer/Offers": 10,
    **dict.fromkeys(("Splitting/Control/Commands", "Exchange/Control/Commands"), 1),
    "HistoryOverflow/Drain/Overflow": 10,
    **{f"Exchange/Route/{name}": 10 for name in RETRIES},
    **dict.fromkeys((f"Live/{name}" for name in ("Session/Inbox", "Session/Timers", "Overview/OverviewCalls")), 10),
    "Live/Deliver/Outbox": 10,
}
WEBSOCKET = "Live/Connections/"
JOBS = {*REPORTS, "CompactHistory", "ExportLogs", "Replay"}
# Resources with a fixed name, which people or other accounts type; CDK generates all other names.
TYPED_NAMES = {
    "AWS::SQS::Queue": (
        "QueueName",
        {
            *("Rendezvous/Broker", "Splitting/Commands", "HistoryOverflow/Queue"),
            *(f"Exchange/{name}" for name in ("Commands", *RETRIES)),
            *(f"Live/{name}" for name in LIVE_QUEUES),
        },
    ),
    "AWS::IAM::User": ("UserName", {"Rendezvous/ClientUser"}),
    "AWS::IAM::ManagedPolicy": ("ManagedPolicyName", set()),
    "AWS::DynamoDB::Table": ("TableName", set()),
    "AWS::Lambda::Function": ("FunctionName", set()),
    "AWS::S3::Bucket": ("BucketName", set()),
    "AWS::Glue::Job": ("Name", {f"{name}/Job" for name in JOBS}),
}


def refused_without_tls(stage: Templates, kind: str, target: str) -> set[str]:
    """Return the names of the resources whose policy denies requests without TLS."""
    found = set()
    for policy in stage.every(kind).values():
        for statement in policy["Properties"]["PolicyDocument"]["Statement"]:
            if statement["Effect"] == "Deny" and statement["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}:
                assert statement["Principal"] == {"AWS": "*"}
                found |= {stage.text(queue) for queue in as_list(policy["Properties"][target])}
    return found


def test_every_queue_is_encrypted_with_our_key_and_reuses_data_keys(stage):
    for name, queue in stage.every("AWS::SQS::Queue").items():
        assert stage.text(queue["Properties"]["KmsMasterKeyId"]) == "QueueKey", name
        assert queue["Properties"]["KmsDataKeyReusePeriodSeconds"] == 3600, name


def test_every_queue_denies_requests_without_tls(stage):
    assert refused_without_tls(stage, "AWS::SQS::QueuePolicy", "Queues") == set(stage.every("AWS::SQS::Queue"))


def test_every_queue_has_or_is_a_dead_letter_queue(stage):
    queues = stage.every("AWS::SQS::Queue")
    schedules = stage.every("AWS::Scheduler::Schedule").values()
    dead_letter_queues = {
        stage.text(q["Properties"]["RedrivePolicy"]["deadLetterTargetArn"])
        for q in queues.values()
        if "RedrivePolicy" in q["Properties"]
    }
    dead_letter_queues |= {stage.text(s["Properties"]["Target"]["DeadLetterConfig"]["Arn"]) for s in schedules}

    for name, queue in queues.items():
        properties = queue["Properties"]
        assert "RedrivePolicy" in properties or name in dead_letter_queues, name
        assert name not in dead_letter_queues or properties["MessageRetentionPeriod"] == 14 * 86_400, name


def test_every_function_has_a_role_of_its_own_and_no_managed_policy(stage):
    roles = [stage.text(f["Properties"]["Role"]) for f in stage.every("AWS::Lambda::Function").values()]

    assert set(stage.every("AWS::Lambda::Function")) == FUNCTIONS
    assert len(set(roles)) == len(roles)
    assert not [
        name for name, role in stage.every("AWS::IAM::Role").items() if "ManagedPolicyArns" in role["Properties"]
    ]


def test_every_function_runs_on_arm_traced_and_with_its_own_log_group(stage):
    groups = set()
    for name, function in stage.every("AWS::Lambda::Function").items():
        properties = function["Properties"]
        assert properties["Architectures"] == ["arm64"], name
        assert properties["TracingConfig"] == {"Mode": "Active"}, name
        groups.add(stage.text(properties["LoggingConfig"]["LogGroup"]))

    assert len(groups) == len(FUNCTIONS)
    assert groups <= set(stage.every("AWS::Logs::LogGroup"))


def test_every_log_group_is_encrypted_and_has_a_retention(stage):
    for name, group in stage.every("AWS::Logs::LogGroup").items():
        assert group["Properties"]["RetentionInDays"] == 30, name
        assert stage.text(group["Properties"]["KmsKeyId"]) == "StateKey", name


def test_every_event_source_mapping_reports_partial_failures_and_bounds_concurrency(stage):
    for name, mapping in stage.every("AWS::Lambda::EventSourceMapping").items():
        properties = mapping["Properties"]
        assert properties["FunctionResponseTypes"] == ["ReportBatchItemFailures"], name
        assert properties["ScalingConfig"] == {"MaximumConcurrency": 10}, name
        assert properties["BatchSize"] == BATCHES[name]


def test_every_alarm_handles_missing_data_and_links_to_the_operations_page(stage):
    for name, alarm in stage.every("AWS::CloudWatch::Alarm").items():
        assert alarm["Properties"]["TreatMissingData"] == "notBreaching", name
        assert alarm["Properties"]["AlarmDescription"].endswith("See docs/operations.md."), name


def test_every_function_and_queue_has_its_alarms(stage):
    alarms = set(stage.every("AWS::CloudWatch::Alarm"))

    expected = {f"{function}/{kind}" for function in FUNCTIONS for kind in ("Errors", "Throttles")}
    expected |= {"Rendezvous/AgeAlarm", "Rendezvous/DeadOffers/Alarm", "Schedules/DeadCalls/Alarm"}
    expected |= {"Rendezvous/Api/ServerErrors", *(f"{job}/Failed" for job in JOBS)}
    expected |= {"Splitting/AgeAlarm", "Splitting/DeadLetters/Alarm"}
    expected |= {f"Exchange/{queue}/AgeAlarm" for queue in ("Commands", *RETRIES)}
    expected |= {f"Exchange/{queue}/Alarm" for queue in ("DeadLetters", "OrderedDeadLetters")}
    expected |= {"Exchange/BacklogAlarm"}
    expected |= {f"Live/{queue}/AgeAlarm" for queue in (*LIVE_QUEUES, "OverviewCalls")}
    expected |= {f"Live/{queue}/Alarm" for queue in ("DeadLetters", "OrderedDeadLetters")} | {"Live/Api/ServerErrors"}
    expected |= {"HistoryLake/DeliveryFailing", "HistoryLake/ConversionFailing"}
    expected |= {"HistoryOverflow/AgeAlarm", "HistoryOverflow/DeadLetters/Alarm"}
    assert alarms == expected


def test_the_dashboard_shows_every_alarm(stage):
    (dashboard,) = stage.every("AWS::CloudWatch::Dashboard").values()
    body = json.dumps(dashboard["Properties"]["DashboardBody"])

    for logical_id, name in stage.names.items():
        if name in stage.every("AWS::CloudWatch::Alarm"):
            assert logical_id in body, name


def test_alarms_notify_the_topic_of_the_setting():
    topic = "arn:aws:sns:eu-central-1:123456789012:operators"
    stage = templates(alarm_topic_arn=topic)

    for name, alarm in stage.every("AWS::CloudWatch::Alarm").items():
        assert alarm["Properties"]["AlarmActions"] == [topic], name


def test_every_table_is_on_demand_encrypted_restorable_and_has_a_time_to_live(stage):
    for name, table in stage.every("AWS::DynamoDB::Table").items():
        properties = table["Properties"]
        assert properties["BillingMode"] == "PAY_PER_REQUEST", name
        assert stage.text(properties["SSESpecification"]["KMSMasterKeyId"]) == "StateKey", name
        restorable = {"PointInTimeRecoveryEnabled": True, "RecoveryPeriodInDays": 1}
        assert properties["PointInTimeRecoverySpecification"] == restorable, name
        assert properties["TimeToLiveSpecification"] == {"AttributeName": "expires_at", "Enabled": True}, name
        assert properties["DeletionProtectionEnabled"] is True, name


def test_every_key_rotates(stage):
    for name, key in stage.every("AWS::KMS::Key").items():
        assert key["Properties"]["EnableKeyRotation"] is True, name


def test_every_bucket_is_encrypted_versioned_private_and_has_a_lifecycle(stage):
    buckets = stage.every("AWS::S3::Bucket")
    for name, bucket in buckets.items():
        properties = bucket["Properties"]
        (rule,) = properties["BucketEncryption"]["ServerSideEncryptionConfiguration"]
        assert stage.text(rule["ServerSideEncryptionByDefault"]["KMSMasterKeyID"]) == "StateKey", name
        assert properties["VersioningConfiguration"] == {"Status": "Enabled"}, name
        assert set(properties["PublicAccessBlockConfiguration"].values()) == {True}, name
        assert properties["LifecycleConfiguration"]["Rules"], name
    assert refused_without_tls(stage, "AWS::S3::BucketPolicy", "Bucket") == set(buckets)


def test_every_secret_is_encrypted_with_our_key_and_in_no_template(stage):
    for name, secret in stage.every("AWS::SecretsManager::Secret").items():
        assert stage.text(secret["Properties"]["KmsKeyId"]) == "StateKey", name
        drawn = "GenerateSecretString" in secret["Properties"]
        assert drawn or secret["Properties"]["SecretString"] == "{}", name


def test_no_template_contains_an_access_key(stage):
    assert stage.every("AWS::IAM::AccessKey") == {}


def test_every_schedule_has_a_retry_policy_and_a_dead_letter_queue(stage):
    schedules = stage.every("AWS::Scheduler::Schedule")
    for name, schedule in schedules.items():
        target = schedule["Properties"]["Target"]
        assert target["RetryPolicy"] == {"MaximumEventAgeInSeconds": 3600, "MaximumRetryAttempts": 3}, name
        assert stage.text(target["DeadLetterConfig"]["Arn"]) == "Schedules/DeadCalls", name
    assert set(schedules) == {
        *("Schedules/SweepLeases", "Schedules/SweepStrays"),
        *(f"Schedules/{name}" for name in STARTED),
        *("Schedules/ExpireQueues", "Schedules/SweepExchanges", "Schedules/SweepSessions"),
        *("Schedules/ConnectQueues", "Schedules/MeasureQueues"),
        *("Schedules/ReconcileSplits", "Schedules/SweepSplits"),
    }


def test_every_api_stage_is_throttled_and_logs_no_client_addresses(stage):
    for name, api_stage in stage.every("AWS::ApiGatewayV2::Stage").items():
        properties = api_stage["Properties"]
        assert properties["DefaultRouteSettings"]["ThrottlingRateLimit"] > 0, name
        assert properties["DefaultRouteSettings"]["ThrottlingBurstLimit"] > 0, name
        if name.startswith(WEBSOCKET):
            assert "AccessLogSettings" not in properties
            continue
        assert json.loads(properties["AccessLogSettings"]["Format"])["requestId"] == "$context.requestId", name
        assert "identity" not in properties["AccessLogSettings"]["Format"], name


def test_every_integration_of_an_http_api_has_payload_format_2(stage):
    for name, integration in stage.every("AWS::ApiGatewayV2::Integration").items():
        assert name.startswith(WEBSOCKET) or integration["Properties"]["PayloadFormatVersion"] == "2.0", name


@pytest.mark.parametrize(
    ("api", "paths"), [("Rendezvous", ("/proxy", "/answer", "/client", "/amp/{proxy+}")), ("Live", ())]
)
def test_an_api_routes_by_path_alone(stage, api, paths):
    routes = stage.every("AWS::ApiGatewayV2::Route").items()
    keys = {route["Properties"]["RouteKey"] for name, route in routes if name.startswith(f"{api}/Api/")}

    assert keys == {"$default", *(f"ANY {path}" for path in paths)}


@pytest.mark.parametrize(
    "kind", ["AWS::DynamoDB::Table", "AWS::S3::Bucket", "AWS::KMS::Key", "AWS::SecretsManager::Secret"]
)
def test_stateful_resources_are_retained_except_on_the_local_stage(stage, kind):
    policies = {resource["DeletionPolicy"] for resource in stage.every(kind).values()}
    local = {resource["DeletionPolicy"] for resource in templates(local=True).every(kind).values()}

    assert (policies, local) == ({"Retain"}, {"Delete"})


def test_the_stage_stack_contains_no_stateful_resources(stage):
    kinds = {resource["Type"] for resource in stage.stage["Resources"].values()}

    assert not kinds & {"AWS::DynamoDB::Table", "AWS::S3::Bucket", "AWS::KMS::Key", "AWS::SecretsManager::Secret"}


@pytest.mark.parametrize("kind", TYPED_NAMES)
def test_names_are_generated_except_for_the_typed_ones(stage, kind):
    name, typed = TYPED_NAMES[kind]

    assert {key for key, resource in stage.every(kind).items() if name in resource["Properties"]} == typed


def test_the_outputs_have_their_documented_names(stage):
    assert set(stage.stage["Outputs"]) == {
        "BrokerQueueUrl",
        "BrokerQueueArn",
        "BrokerQueueName",
        "DeadLetterQueueUrl",
        "RendezvousUrl",
        "RendezvousApiId",
        "HistoryBucket",
        "HistoryStream",
        "HistoryDatabase",
        "HistoryTable",
        "RendezvousTable",
        "LeaseTable",
        "ClientUserName",
        "ClientSecretArn",
        "ClientQueuePrefix",
        "ReportJobName",
        "ReportPrefix",
        "SweepFunctionName",
        "SplitControlQueueUrl",
        "SplitDeadLetterQueueUrl",
        "SplitTable",
        "SplitFunctionName",
        "ControlFunctionName",
        "SplitReplyQueuePrefix",
        "TemporaryQueuePrefix",
        "SplitReportJobName",
        "SplitReportPrefix",
        "SplitUserPolicyArn",
        "ExchangeControlQueueUrl",
        "ExchangeReplyQueuePrefix",
        "ExchangePrefix",
        "ExchangeDeadLetterQueueUrl",
        "ExchangeTable",
        "RouteFunctionName",
        "RouteFunctionArn",
        "ExchangeControlFunctionName",
        "LiveWebSocketUrl",
        "LiveWebSocketApiId",
        "LivePageUrl",
        "LivePageApiId",
        "LiveTable",
        "LiveInboxUrl",
        "LiveOutboxUrl",
        "LiveDeadLetterQueueUrl",
        "LiveOrderedDeadLetterQueueUrl",
        "SessionFunctionName",
        "DeliverFunctionName",
        "Region",
    }
