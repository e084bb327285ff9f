"""Rules for all resources of a type, including resources that are added later."""

import json

import pytest

from signalbox.aws.shared import dynamodb
from stacks.shared import tables
from tests.infrastructure.history.jobs import REPORTS, STARTED
from tests.infrastructure.other_settings import OTHERWISE
from tests.infrastructure.templates import Templates, as_list, templates

THEIRS = "arn:aws:sqs:eu-central-1:123456789012:their-queue"
DOORS = {"Doors/Proxies", "Doors/Clients"}
FUNCTIONS = {"Rendezvous/Offer", "Rendezvous/Sweep", *DOORS}
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
    **dict.fromkeys((f"Live/{name}" for name in ("Session/Inbox", "Session/Timers", "Overview/OverviewCalls")), 10),
    "Live/Deliver/Outbox": 10,
}
TASKS = {
    "MaintainQueues": ("rate(1 minute)", "maintain"),
    "MeasureQueues": ("rate(5 minutes)", "measure"),
    "ReconcileSplits": ("rate(1 minute)", "reconcile"),
    "SweepExchanges": ("cron(10 5 * * ? *)", "strays"),
    "SweepSessions": ("rate(5 minutes)", "sweep"),
    "SweepSplits": ("cron(10 4 * * ? *)", "strays"),
}
WEBSOCKET = "Live/Connections/"
JOBS = {*REPORTS, "CompactHistory", "Day", "ExportLogs", "Replay"}
ATTRIBUTE_NAMES = ("AttributeDefinitions", "KeySchema", "GlobalSecondaryIndexes.KeySchema", "TimeToLiveSpecification")
# Resources with a fixed name; CDK generates all others. A stack that is deleted, or rolls back its first deployment,
# deletes each, so that the next deployment can create it: the test below finds nothing retained in the stage's stack,
# and the only name in the state stack is of a resource with RetainExceptOnCreate. The names of the two kinds of APIs
# need not be unique.
TYPED_NAMES = {
    # After 60 s, which SQS demands between the deletion and the creation of a name.
    "AWS::SQS::Queue": {
        *("Rendezvous/Broker", "Splitting/Commands", "Splitting/Replies", "HistoryOverflow/Queue"),
        *(f"Exchange/{name}" for name in ("Commands", "Replies", *RETRIES)),
        *(f"Live/{name}" for name in (*LIVE_QUEUES, "OverviewCalls")),
    },
    "AWS::IAM::User": {"Rendezvous/ClientUser"},
    # The jobs, which make missing groups, are deleted first.
    "AWS::Logs::LogGroup": {
        *("HistoryJobs/ErrorLogs", "HistoryJobs/OutputLogs"),
        *("Rendezvous/Api/AccessLogs", "Live/Api/AccessLogs"),
    },
    "AWS::Glue::Job": {f"{name}/Job" for name in JOBS},
    "AWS::Glue::SecurityConfiguration": {"HistoryJobs/Security"},
    "AWS::Glue::Database": {"HistoryDatabase"},
    "AWS::Athena::WorkGroup": {"HistoryLake/WorkGroup"},
    "AWS::Glue::Table": {"HistoryLake/RawEvents"},
    "AWS::Scheduler::ScheduleGroup": {"Schedules/Group"},
    "AWS::CloudWatch::Dashboard": {"Monitoring/Dashboard"},
    "AWS::KinesisFirehose::DeliveryStream": {"HistoryLake/Events"},
    "AWS::ApiGatewayV2::Api": {"Rendezvous/Api/Http", "Live/Api/Http", "Live/Connections/WebSocket"},
}
# Names of other resources, and names that are unique within their own resource only.
OTHER_NAMES = {
    *(("AWS::CloudWatch::Alarm", path) for path in ("Dimensions.Name", "MetricName")),
    ("AWS::Logs::MetricFilter", "MetricTransformations.MetricName"),
    *(("AWS::DynamoDB::Table", f"{path}.AttributeName") for path in ATTRIBUTE_NAMES),
    ("AWS::DynamoDB::Table", "GlobalSecondaryIndexes.IndexName"),
    ("AWS::ApiGatewayV2::Stage", "StageName"),
    ("AWS::Glue::Job", "Command.Name"),
    *(("AWS::Glue::Table", f"TableInput.{path}.Name") for path in ("PartitionKeys", "StorageDescriptor.Columns")),
    ("AWS::Glue::Table", "DatabaseName"),
    ("AWS::IAM::Policy", "PolicyName"),
    (
        "AWS::KinesisFirehose::DeliveryStream",
        "ExtendedS3DestinationConfiguration.DataFormatConversionConfiguration.SchemaConfiguration.DatabaseName",
    ),
    ("AWS::Scheduler::Schedule", "GroupName"),
}
# Deletion policies of the resources with state. RetainExceptOnCreate deletes what a failed first deployment created.
# Tables have generated names, and their deletion protection would make such a rollback fail.
RETAINED = {
    "AWS::DynamoDB::Table": "Retain",
    **dict.fromkeys(
        ("AWS::S3::Bucket", "AWS::KMS::Key", "AWS::Glue::Database"),
        "RetainExceptOnCreate",
    ),
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
        assert stage.text(queue["Properties"]["KmsMasterKeyId"]) == "StateKey", name
        assert queue["Properties"]["KmsDataKeyReusePeriodSeconds"] == 3600, name


def test_every_queue_denies_requests_without_tls(stage):
    assert refused_without_tls(stage, "AWS::SQS::QueuePolicy", "Queues") == set(stage.every("AWS::SQS::Queue"))


@pytest.mark.parametrize(
    "settings", [{}, {"local": True}, OTHERWISE, {"capabilities": "rendezvous", "broker_queue_arn": THEIRS}]
)
def test_sqs_dead_letters_no_message_and_takes_no_dead_letters_of_others(settings):
    """SQS counts receives, also those of functions that were killed or could not reach a service."""
    for name, queue in templates(**settings).every("AWS::SQS::Queue").items():
        assert "RedrivePolicy" not in queue["Properties"], name
        assert queue["Properties"]["RedriveAllowPolicy"] == {"redrivePermission": "denyAll"}, name


def test_dead_letters_are_kept_as_long_as_sqs_allows(stage):
    for name, queue in stage.every("AWS::SQS::Queue").items():
        if "Dead" in name:
            assert queue["Properties"]["MessageRetentionPeriod"] == 14 * 86_400, name


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
        # Strangers choose the number of their requests: those are neither traced nor logged by Lambda.
        is_strangers = name in {"Rendezvous/Offer", *DOORS}
        assert properties.get("TracingConfig") == (None if is_strangers else {"Mode": "Active"}), name
        assert properties["LoggingConfig"]["SystemLogLevel"] == ("WARN" if is_strangers else "INFO"), name
        groups.add(stage.text(properties["LoggingConfig"]["LogGroup"]))

    assert len(groups) == len(FUNCTIONS)
    assert groups <= set(stage.every("AWS::Logs::LogGroup"))


def test_every_log_group_is_encrypted_and_has_a_retention(stage):
    for name, group in stage.every("AWS::Logs::LogGroup").items():
        assert group["Properties"]["RetentionInDays"] == 30, name
        assert stage.text(group["Properties"]["KmsKeyId"]) == "StateKey", name


def test_access_logs_do_not_count_against_the_length_of_the_accounts_resource_policy(stage):
    """CloudWatch Logs admits all groups with this prefix at once when the policy nears its 5,120 characters."""
    settings = [one["Properties"].get("AccessLogSettings") for one in stage.every("AWS::ApiGatewayV2::Stage").values()]
    groups = stage.every("AWS::Logs::LogGroup")

    names = sorted(stage.text(one["DestinationArn"]) for one in settings if one)
    assert names == ["Live/Api/AccessLogs", "Rendezvous/Api/AccessLogs"]
    assert all(groups[name]["Properties"]["LogGroupName"].startswith("/aws/vendedlogs/signalbox-") for name in names)


def test_every_event_source_mapping_reports_partial_failures_and_bounds_concurrency(stage):
    for name, mapping in stage.every("AWS::Lambda::EventSourceMapping").items():
        properties = mapping["Properties"]
        assert properties["FunctionResponseTypes"] == ["ReportBatchItemFailures"], name
        assert properties["ScalingConfig"] == {"MaximumConcurrency": 10}, name
        assert properties["BatchSize"] == BATCHES[name]


def test_a_boundary_of_the_setting_bounds_every_role_and_user(otherwise):
    identities = otherwise.every("AWS::IAM::Role") | otherwise.every("AWS::IAM::User")
    for name, identity in identities.items():
        assert "policy/limits" in json.dumps(identity["Properties"]["PermissionsBoundary"]), name


def test_every_table_is_on_demand_encrypted_restorable_and_has_a_time_to_live(stage):
    for name, table in stage.every("AWS::DynamoDB::Table").items():
        properties = table["Properties"]
        assert properties["BillingMode"] == "PAY_PER_REQUEST", name
        assert stage.text(properties["SSESpecification"]["KMSMasterKeyId"]) == "StateKey", name
        restorable = {"PointInTimeRecoveryEnabled": True, "RecoveryPeriodInDays": 1}
        assert properties["PointInTimeRecoverySpecification"] == restorable, name
        assert properties["TimeToLiveSpecification"] == {"AttributeName": "expires_at", "Enabled": True}, name
        assert properties["DeletionProtectionEnabled"] is True, name


def test_a_stage_has_one_key_which_rotates(stage):
    (key,) = stage.every("AWS::KMS::Key").values()

    assert key["Properties"]["EnableKeyRotation"] is True


def test_the_key_allows_what_dynamodb_demands(stage):
    statements = {
        statement["Sid"]: set(statement["Action"]) for name, statement in stage.statements() if name == "StateKey"
    }

    demanded = ("Encrypt", "Decrypt", "ReEncryptFrom", "ReEncryptTo", "DescribeKey")
    generated = ("GenerateDataKey", "GenerateDataKeyWithoutPlaintext")
    assert statements["UseThroughServices"] == {f"kms:{action}" for action in (*demanded, *generated)}


def test_every_bucket_is_encrypted_versioned_private_and_has_a_lifecycle(stage):
    buckets = stage.every("AWS::S3::Bucket")
    for name, bucket in buckets.items():
        properties = bucket["Properties"]
        (rule,) = properties["BucketEncryption"]["ServerSideEncryptionConfiguration"]
        assert stage.text(rule["ServerSideEncryptionByDefault"]["KMSMasterKeyID"]) == "StateKey", name
        assert properties["VersioningConfiguration"] == {"Status": "Enabled"}, name
        assert set(properties["PublicAccessBlockConfiguration"].values()) == {True}, name
        assert any(one.get("ExpiredObjectDeleteMarker") for one in properties["LifecycleConfiguration"]["Rules"]), name
    assert refused_without_tls(stage, "AWS::S3::BucketPolicy", "Bucket") == set(buckets)


def test_what_contains_messages_is_deleted_with_its_versions(stage):
    """In a versioned bucket, what expires stays as a version."""
    rules = {
        one["Id"]: one
        for one in stage.every("AWS::S3::Bucket")["History"]["Properties"]["LifecycleConfiguration"]["Rules"]
    }

    versions = {
        name: one["NoncurrentVersionExpiration"]["NoncurrentDays"]
        for name, one in rules.items()
        if "NoncurrentVersionExpiration" in one
    }

    assert versions == {"kept": 1, "queries": 1, "audits": 1, "leftovers": 30}


def test_no_template_contains_an_access_key(stage):
    assert stage.every("AWS::IAM::AccessKey") == {}


def test_every_schedule_has_a_retry_policy_and_a_dead_letter_queue(stage):
    schedules = stage.every("AWS::Scheduler::Schedule")
    for name, schedule in schedules.items():
        target = schedule["Properties"]["Target"]
        assert target["RetryPolicy"] == {"MaximumEventAgeInSeconds": 3600, "MaximumRetryAttempts": 185}, name
        assert stage.text(target["DeadLetterConfig"]["Arn"]) == "Schedules/DeadCalls", name
    assert {name.removeprefix("Schedules/") for name in schedules} == {"SweepLeases", "SweepStrays", *STARTED, *TASKS}


@pytest.mark.parametrize("name", TASKS)
def test_a_function_has_a_task_at_its_times(stage, name):
    schedule = stage.every("AWS::Scheduler::Schedule")[f"Schedules/{name}"]["Properties"]

    expression, task = TASKS[name]
    assert (schedule["ScheduleExpression"], schedule["Target"]["Input"]) == (expression, f'{{"task":"{task}"}}')


@pytest.mark.parametrize("name", ["Exchanges", "Splits"])
def test_the_index_of_a_table_lists_what_there_is_of_a_kind(stage, name):
    (index,) = stage.every("AWS::DynamoDB::Table")[name]["Properties"]["GlobalSecondaryIndexes"]

    assert index["IndexName"] == tables.BY_KIND == dynamodb.BY_KIND_INDEX
    assert [key["AttributeName"] for key in index["KeySchema"]] == ["kind", "pk"]
    assert index["Projection"] == {"ProjectionType": "ALL"}


def test_every_api_stage_is_throttled_and_logs_no_client_addresses(stage):
    for name, api_stage in stage.every("AWS::ApiGatewayV2::Stage").items():
        properties = api_stage["Properties"]
        # Metrics of each route are custom metrics, about 0.30 USD a month each, that no alarm or graph reads.
        assert "DetailedMetricsEnabled" not in json.dumps(properties), name
        assert properties["DefaultRouteSettings"]["ThrottlingRateLimit"] > 0, name
        assert properties["DefaultRouteSettings"]["ThrottlingBurstLimit"] > 0, name
        if name.startswith(WEBSOCKET):
            assert "AccessLogSettings" not in properties
            continue
        assert json.loads(properties["AccessLogSettings"]["Format"])["requestId"] == "$context.requestId", name
        assert "identity" not in properties["AccessLogSettings"]["Format"], name


def test_every_route_of_a_public_api_has_a_limit_that_fits_its_function(stage):
    limits = {name: one["Properties"] for name, one in stage.every("AWS::ApiGatewayV2::Stage").items()}

    found = {
        (name.removesuffix("/Stage"), route): settings["ThrottlingRateLimit"]
        for name, properties in limits.items()
        for route, settings in [
            ("other", properties["DefaultRouteSettings"]),
            *properties.get("RouteSettings", {}).items(),
        ]
    }

    assert found == {
        ("Rendezvous/Api", "ANY /proxy"): 400,
        ("Rendezvous/Api", "ANY /answer"): 100,
        ("Rendezvous/Api", "ANY /client"): 50,
        ("Rendezvous/Api", "ANY /amp/{proxy+}"): 50,
        ("Rendezvous/Api", "other"): 50,
        ("Live/Api", "other"): 100,
        ("Live/Connections", "$connect"): 500,
        ("Live/Connections", "other"): 1000,
    }


def test_settings_of_a_route_contain_all_of_the_stage_and_follow_the_route(stage):
    routes = {
        key: one["Properties"]["RouteKey"]
        for key, one in stage.stage["Resources"].items()
        if one["Type"] == "AWS::ApiGatewayV2::Route"
    }
    for name, api_stage in stage.every("AWS::ApiGatewayV2::Stage").items():
        properties, after = api_stage["Properties"], as_list(api_stage.get("DependsOn", []))
        for route, settings in properties.get("RouteSettings", {}).items():
            assert settings.keys() == properties["DefaultRouteSettings"].keys(), (name, route)
            assert route in {routes.get(key) for key in after}, (name, route)


def test_functions_that_anyone_can_call_have_reserved_concurrency_and_no_others(stage):
    assert reservations(stage) == {
        "Doors/Clients": 50,
        "Doors/Proxies": 50,
        "Live/Connect": 50,
        "Live/Page": 10,
    }


def test_every_function_behind_an_api_or_an_open_url_has_reserved_concurrency(stage):
    called = {
        stage.text(one["Properties"]["FunctionName"])
        for one in stage.every("AWS::Lambda::Permission").values()
        if one["Properties"]["Principal"] in ("apigateway.amazonaws.com", "*")
    }

    assert called == set(reservations(stage))


def test_a_stage_without_reserved_concurrency_fits_into_an_account_with_ten_executions():
    assert reservations(templates(reserve_concurrency="false", rendezvous_doors="api")) == {}


def reservations(stage: Templates) -> dict[str, int]:
    functions = stage.every("AWS::Lambda::Function")
    found = {name: one["Properties"].get("ReservedConcurrentExecutions") for name, one in functions.items()}
    return {name: number for name, number in found.items() if number is not None}


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


@pytest.mark.parametrize("kind", RETAINED)
def test_stateful_resources_are_retained_except_on_the_local_stage(stage, kind):
    policies = {(one["DeletionPolicy"], one["UpdateReplacePolicy"]) for one in stage.every(kind).values()}
    local = {resource["DeletionPolicy"] for resource in templates(local=True).every(kind).values()}

    assert (policies, local) == ({(RETAINED[kind], "Retain")}, {"Delete"})


def test_the_stage_stack_contains_no_stateful_resources(stage):
    kinds = {resource["Type"] for resource in stage.stage["Resources"].values()}

    assert not kinds & set(RETAINED)


@pytest.mark.parametrize("settings", [{}, {"local": True}], ids=["default", "local"])
def test_the_stage_stack_retains_nothing(settings):
    for name, resource in templates(**settings).stage["Resources"].items():
        assert resource.get("DeletionPolicy", "Delete") == "Delete", name
        assert resource.get("UpdateReplacePolicy", "Delete") == "Delete", name


def test_names_are_generated_except_for_the_typed_ones_which_a_deleted_or_failed_stack_frees(stage):
    fixed = {
        (resource["Type"], stage.names[key])
        for template in (stage.state, stage.stage)
        for key, resource in template["Resources"].items()
        for path in literals(resource.get("Properties", {}))
        if path.endswith("Name") and (resource["Type"], path) not in OTHER_NAMES
    }

    assert fixed == {(kind, name) for kind, names in TYPED_NAMES.items() for name in names}


def literals(value, path=""):
    """Yield the path of every text in a value that is not a reference."""
    if isinstance(value, str):
        yield path.removeprefix(".")
    elif isinstance(value, dict):
        for key, part in value.items():
            yield from literals(part, f"{path}.{key}")
    elif isinstance(value, list):
        for part in value:
            yield from literals(part, path)


def test_the_output_has_the_fingerprints_of_the_given_bridge_list(tmp_path):
    bridges = tmp_path / "bridges.jsonl"
    line = '{{"displayName":"a","webSocketAddress":"wss://a.example/","fingerprint":"{}"}}\n'
    bridges.write_text(line.format("a" * 40) + line.format("B" * 64))

    outputs = templates(capabilities="rendezvous", bridge_list_file=str(bridges)).stage["Outputs"]

    assert outputs["BridgeFingerprints"]["Value"] == f"{'A' * 40},{'B' * 64}"
