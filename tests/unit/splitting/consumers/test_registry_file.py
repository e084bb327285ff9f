"""Registries as mirrord's users write them, for the workloads that Signalbox can switch."""

from datetime import timedelta

import pytest

from signalbox.splitting.consumers.registry import NameSource, RegisteredQueue, Registry, SourceKind
from signalbox.splitting.consumers.registry_file import documents_of, parse_registries, queues_of_other_brokers
from signalbox.splitting.consumers.registry_summary import registry_summary
from tests.unit.splitting.consumers.registries import (
    MEME_APP,
    in_namespace,
    new,
    new_queue,
    old,
    old_queue,
    parse,
    property_list,
    source,
)
from tests.unit.splitting.forwarding.languages import PlainLanguages


def test_both_forms_of_mirrords_migration_example_are_equal():
    """migrating-to-mirrordsplitconfig.md, Amazon SQS, with the workload of a Lambda function."""
    before = old(
        {
            "meme-queue": old_queue(nameSource={"envVar": "MEME"}, tags={"tool": "mirrord"}, sns=True),
            "ad-queue": old_queue(nameSource={"envVar": "AD"}),
        }
    )
    after = new(
        new_queue({"env": "MEME", "containers": ["main"]}, id="meme-queue", queueConfig="options"),
        new_queue({"env": "AD", "containers": ["main"]}, id="ad-queue"),
    )

    expected = Registry(
        MEME_APP,
        (
            RegisteredQueue(
                "meme-queue",
                (NameSource(SourceKind.VARIABLE, "MEME", containers=("main",)),),
                {"tool": "mirrord"},
                sns=True,
            ),
            RegisteredQueue("ad-queue", (NameSource(SourceKind.VARIABLE, "AD", containers=("main",)),), {}),
        ),
    )
    assert parse(before) == (expected,)
    assert parse(after, None, property_list(sns="true", s3_event="false", tags='{"tool":"mirrord"}')) == (expected,)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"nameSource": {"regexPattern": "^Q"}}, NameSource(SourceKind.VARIABLES_LIKE, "^Q", containers=("main",))),
        ({"fallbackName": "memes"}, NameSource(SourceKind.VARIABLE, "Q", fallback="memes", containers=("main",))),
        ({"namesFromJsonMap": True}, NameSource(SourceKind.VARIABLE, "Q", selector=".[]", containers=("main",))),
        ({"s3Event": False}, NameSource(SourceKind.VARIABLE, "Q", containers=("main",))),
        ({"nameSource": {"eventSource": "memes"}}, NameSource(SourceKind.EVENT_SOURCE, "memes", containers=("main",))),
        (
            {"nameSource": {"eventSource": "memes", "envVar": "Q"}},
            NameSource(SourceKind.EVENT_SOURCE, "memes", containers=("main",), variable="Q"),
        ),
    ],
    ids=["regexPattern", "fallbackName", "namesFromJsonMap", "no s3Event", "eventSource", "eventSource and envVar"],
)
def test_name_sources_of_the_older_form(fields, expected):
    assert source(old({"q": old_queue(**fields)})) == expected


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ({"envLike": "^Q"}, NameSource(SourceKind.VARIABLES_LIKE, "^Q")),
        ({"env": "Q", "fallback": "memes"}, NameSource(SourceKind.VARIABLE, "Q", fallback="memes")),
        ({"env": "Q", "valueSelector": ".[]"}, NameSource(SourceKind.VARIABLE, "Q", selector=".[]")),
        ({"env": "Q", "valueSelector": ".queue"}, NameSource(SourceKind.VARIABLE, "Q", selector=".queue")),
        ({"env": "Q", "valuePattern": "q=(.*)"}, NameSource(SourceKind.VARIABLE, "Q", pattern="q=(.*)")),
        ({"eventSource": "memes"}, NameSource(SourceKind.EVENT_SOURCE, "memes")),
    ],
)
def test_name_sources_of_the_newer_form(written, expected):
    assert source(new(new_queue(written))) == expected


@pytest.mark.parametrize("fields", [{"nameSource": None}, {"nameSource": {"envVar": "Q"}}])
def test_a_parameters_own_value_is_the_name(fields):
    found = source(old({"q": old_queue(**fields)}, kind="SsmParameter", name="/memes/queue"))

    variable = "Q" if fields["nameSource"] else None
    assert found == NameSource(SourceKind.VALUE, containers=("main",), variable=variable)


def test_time_limits_and_names_are_read():
    """`workloadRestartTimeout` defaults to 120 s; without `drainTimeout` there is no limit."""
    (first,) = parse(old({"q": old_queue()}))
    (second,) = parse(old({"q": old_queue()}, workloadRestartTimeout=30))
    (third,) = parse(
        new(
            new_queue({"env": "Q"}),
            restart={"strategy": "standard", "timeout": 60},
            drainTimeout=0,
            tmpNameTemplate="mirrord-{{RANDOM}}",
        )
    )

    assert (first.switch_timeout, first.drain_timeout) == (timedelta(seconds=120), None)
    assert second.switch_timeout == timedelta(seconds=30)
    assert (third.switch_timeout, third.drain_timeout) == (timedelta(seconds=60), timedelta(0))
    assert third.name_template == "mirrord-{{RANDOM}}"


def printed(*items: object) -> dict[str, object]:
    """Return several resources in the form of `kubectl get -o yaml`."""
    return {"apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": ""}, "items": list(items)}


def test_a_list_of_kubectl_holds_registries():
    ours = {**old({"q": old_queue()}), "status": {"sqsDetails": {"queueNames": {}}}}
    configured = new(new_queue({"env": "Q"}, queueConfig="options"), name="other")
    shared = [printed(ours, configured), None, property_list(sns="true"), printed()]

    found = parse(*shared)

    assert found == (*parse(ours), *parse(configured, property_list(sns="true")))
    assert documents_of(shared, MEME_APP, PlainLanguages(), cluster=None) == [ours, property_list(sns="true")]


@pytest.mark.parametrize(("form", "queue"), [(old, {"q": old_queue()}), (new, new_queue({"env": "Q"}))])
def test_a_registry_in_the_operators_namespace_names_that_of_its_target(form, queue):
    """mirrord, operator/src/crd.rs: TARGET_NAMESPACE_ANNOTATION."""
    annotations = {"mirrord.metalbear.co/target-namespace": "shop", "signalbox/cluster": "east"}

    (registry,) = parse(in_namespace("mirrord", form(queue, kind="Deployment"), **annotations))

    assert str(registry.target) == "deployment/meme-app@shop.east"


def test_nulls_are_absent():
    """All of them are nullable in the definitions of mirrord-operator's chart."""
    nothing = dict.fromkeys(("envLike", "fallback", "valueSelector", "valuePattern", "containers"))
    application = {"queue": [{"env": "Q", **nothing}], **dict.fromkeys(("topic", "exchange", "taskQueue", "groupId"))}
    queue = {"id": "q", "kind": "sqs", "clientConfig": None, "queueConfig": None, "appConfig": application}
    written = new(
        queue,
        restart=dict.fromkeys(("strategy", "timeout", "waitForPods")),
        **dict.fromkeys(("clientConfigs", "drainTimeout", "tmpNameTemplate")),
    )
    older = old_queue(**dict.fromkeys(("fallbackName", "namesFromJsonMap", "tags", "sns", "s3Event")))
    of_clients = new(new_queue({"env": "Q"}), restart=None, clientConfigs={"sqs": None, "kafka": None})

    assert parse(written) == parse(of_clients) == parse(new(new_queue({"env": "Q"})))
    assert parse(old({"q": older}, workloadRestartTimeout=None)) == parse(old({"q": old_queue()}))


def test_older_registries_of_one_target_are_merged():
    """Wire page, A.6: two registries on one workload must be merged."""
    (registry,) = parse(old({"a": old_queue()}, workloadRestartTimeout=200), old({"b": old_queue()}))

    assert [queue.queue_id for queue in registry.queues] == ["a", "b"]
    assert registry.switch_timeout == timedelta(seconds=200)


def test_a_property_list_is_that_of_the_targets_namespace_or_of_the_operators():
    """metalbear-co/docs, queue-splitting.md: Sharing Property Lists Across Namespaces."""
    shop, lab = (
        in_namespace(name, new(new_queue({"env": "Q"}, queueConfig="options"), kind="Deployment"))
        for name in ("shop", "lab")
    )
    lists = [property_list("mirrord", sns="true"), property_list("bank"), property_list("shop", s3_event="true")]

    found = parse(shop, *lists, lab)

    assert [(one.queues[0].sns, one.queues[0].s3_event) for one in found] == [(False, True), (True, False)]


def test_a_list_that_no_queue_on_sqs_names_may_have_other_properties():
    client = {**property_list(), "spec": {"propertiesFrom": [{"secretRef": {"name": "kafka"}}]}}

    assert parse(new({**KAFKA, "queueConfig": "options"}, new_queue({"env": "Q"})), client)


RMQ = {"queueType": "RMQ", "clusterProperties": "rabbit", "nameSource": {"envVar": "R"}}
KAFKA = {
    "id": "audit",
    "kind": "kafka",
    "clientConfig": "kafka-conf",
    "appConfig": {"topic": [{"env": "TOPIC"}], "groupId": [{"env": "GROUP"}]},
}


@pytest.mark.parametrize(
    "document",
    [
        old({"q": old_queue(), "audit": RMQ}),
        new(KAFKA, new_queue({"env": "Q", "containers": ["main"]}), clientConfigs={"kafka": "kafka-conf"}),
    ],
    ids=["older", "newer"],
)
def test_queues_of_other_brokers_are_ignored_and_named(document):
    """One registry describes all queues of a workload: mirrord-operator's CRDs, enums of `queueType` and `kind`."""
    (registry,) = parse(document, old({"audit": RMQ}, name="other"))

    assert [queue.queue_id for queue in registry.queues] == ["q"]
    assert queues_of_other_brokers([document]) in (["audit (RMQ)"], ["audit (kafka)"])


def test_a_registry_of_another_broker_does_not_count_as_a_second_one():
    config = new(new_queue({"env": "Q"}))

    assert parse(config, old({"q": RMQ}), new({**KAFKA, "id": "q"})) == parse(config)


def test_the_registry_of_another_broker_belongs_to_its_target():
    ours, theirs = old({"q": old_queue()}), old({"audit": RMQ}, name="other")
    shared = old({"audit": RMQ})

    found = documents_of([ours, theirs, shared], MEME_APP, PlainLanguages(), cluster=None)

    assert found == [ours, shared]


def test_a_file_may_have_registries_of_several_targets():
    registries = parse(old({"a": old_queue()}), old({"a": old_queue()}, name="other"))

    assert [str(registry.target) for registry in registries] == ["lambda/meme-app", "lambda/other"]


def test_a_queue_of_s3_events_is_marked_in_both_forms():
    """mirrord, docs: migrating-to-mirrordsplitconfig.md."""
    before = old({"q": old_queue(sns=True, s3Event=True)})
    after = new(new_queue({"env": "Q", "containers": ["main"]}, queueConfig="options"))

    for registry in (parse(before), parse(after, property_list(sns="true", s3_event="true"))):
        (queue,) = registry[0].queues
        assert (queue.sns, queue.s3_event) == (True, True)


@pytest.mark.parametrize(
    ("metadata", "cluster", "expected"),
    [
        ({"name": "meme-app-q-registry"}, None, "deployment/meme-app@default"),
        ({"name": "meme-app-q-registry", "namespace": "meme"}, None, "deployment/meme-app@meme"),
        ({"name": "meme-app-q-registry", "namespace": "meme"}, "main", "deployment/meme-app@meme.main"),
        ({"name": "r", "annotations": {"signalbox/cluster": "east"}}, "main", "deployment/meme-app@default.east"),
    ],
)
def test_mirrords_first_example_is_a_registry_of_a_deployment(metadata, cluster, expected):
    """The registry in metalbear-co/docs, sharing-the-cluster/queue-splitting, with its two queues."""
    queues = {
        "meme-queue": old_queue(nameSource={"envVar": "INCOMING_MEME_QUEUE_NAME"}, tags={"tool": "mirrord"}),
        "ad-queue": old_queue(nameSource={"envVar": "AD_QUEUE_NAME"}, tags={"tool": "mirrord"}),
    }
    document = {**old(queues, kind="Deployment"), "metadata": metadata}

    (registry,) = parse_registries([document], PlainLanguages(), cluster=cluster)

    assert str(registry.target) == expected
    assert [(one.queue_id, one.sources[0].key, one.sources[0].containers) for one in registry.queues] == [
        ("meme-queue", "INCOMING_MEME_QUEUE_NAME", ("main",)),
        ("ad-queue", "AD_QUEUE_NAME", ("main",)),
    ]


@pytest.mark.parametrize("restart", [{"waitForPods": "all"}, {"waitForPods": 1}, {"strategy": "isolatePods"}])
def test_a_split_config_of_a_deployment_may_say_how_its_pods_are_replaced(restart):
    (registry,) = parse(new(new_queue({"env": "Q"}), kind="Deployment", restart=restart))

    assert str(registry.target) == "deployment/meme-app@default"


def test_registries_of_one_workload_in_two_namespaces_are_two():
    documents = [
        {**old({"q": old_queue()}, kind="StatefulSet"), "metadata": {"name": "r", "namespace": namespace}}
        for namespace in ("one", "two")
    ]

    assert [str(one.target) for one in parse(*documents)] == ["statefulset/meme-app@one", "statefulset/meme-app@two"]


def test_a_summary_has_the_queues_and_where_their_names_come_from():
    document = new(
        new_queue(
            {"env": "Q", "containers": ["a", "b"], "valuePattern": "q=(.*)", "fallback": "memes"},
            {"envLike": "^Q_", "valueSelector": ".[]"},
        ),
        drainTimeout=5,
    )
    mapped = old({"q": old_queue(nameSource={"eventSource": "memes", "envVar": "Q"})}, name="other")
    parameter = old({"q": old_queue(nameSource={"envVar": "Q"})}, name="/q", kind="SsmParameter")

    found = [registry_summary(one) for one in parse(document, mapped, parameter)]

    assert found[0] == {
        "target": "lambda/meme-app",
        "queues": [
            {
                "id": "q",
                "names": [
                    "variable Q, container a or b, the part that matches q=(.*), otherwise memes",
                    "variables like ^Q_, JSON values .[]",
                ],
                "sns": False,
                "tags": {},
            }
        ],
        "switch_timeout": 120.0,
        "drain_timeout": 5.0,
    }
    assert found[1]["queues"][0]["names"] == [
        "event source mapping of memes, container main, given to local commands as Q"
    ]
    assert found[1]["drain_timeout"] is None
    assert found[2]["queues"][0]["names"] == ["the parameter's value, container main, given to local commands as Q"]
