"""The problems reported for unusable registries."""

import pytest

from signalbox.splitting.consumers.property_lists import NOT_READ
from tests.unit.splitting.consumers.registries import (
    OLD,
    in_namespace,
    new,
    new_queue,
    old,
    old_queue,
    problems,
    property_list,
)


def test_an_unsupported_kubernetes_workload_is_refused_with_the_supported_kinds():
    assert problems(old({"q": old_queue()}, kind="DaemonSet")) == [
        (
            "document 1.spec.consumer.workloadType: workload kind 'DaemonSet' of Kubernetes cannot be switched and is "
            "not supported; supported kinds: Lambda, EcsService, SsmParameter, Deployment, StatefulSet, Rollout"
        )
    ]
    assert problems(new(new_queue({"env": "Q"}), kind="Job"))[0].startswith("document 1.spec.targetRef.kind: ")


def test_all_problems_of_a_kubernetes_workload_are_reported_with_their_paths():
    document = new(
        new_queue({"eventSource": "memes"}),
        kind="Deployment",
        name="meme-app/main",
        restart={"strategy": "recreate", "waitForPods": "some"},
    )
    document["spec"]["targetRef"]["apiVersion"] = "v1"
    document["metadata"] = {"name": "x", "namespace": "a.b"}

    assert problems(document) == [
        "document 1.spec.targetRef.name: expected a workload's name alone, not 'meme-app/main': see metadata.namespace",
        "document 1.spec.targetRef.apiVersion: expected apps/v1, not 'v1'",
        "document 1.spec.queues[0].appConfig.queue[0]: expected exactly one of env, envLike",
        "document 1.spec.restart.strategy: only standard and isolatePods are supported",
        "document 1.spec.restart.waitForPods: expected a whole number from 0 on, not 'some'",
        (
            "document 1.metadata: deployment/meme-app: 'a.b' is no namespace of Kubernetes; expected "
            "NAME[@NAMESPACE[.CLUSTER]][/CONTAINER]"
        ),
    ]


SPEC = "document 1.spec"


@pytest.mark.parametrize(
    ("document", "found"),
    [
        pytest.param(old({}), [f"{SPEC}.queues: is missing or empty, so there is nothing to split"], id="no queues"),
        pytest.param(new(), [f"{SPEC}.queues: is missing or empty, so there is nothing to split"], id="none either"),
        pytest.param(
            old({"q": old_queue(queueType="sqs")}),
            [f"{SPEC}.queues.q.queueType: expected SQS or RMQ, not 'sqs'"],
            id="broker",
        ),
        pytest.param(
            new(new_queue({"env": "Q"}, kind="pulsar")),
            [
                (
                    f"{SPEC}.queues[0].kind: expected sqs or kafka or rmq or googlePubSub or azureServiceBus or "
                    "redisPubSub or temporal or bullMq or nats or natsPubSub, not 'pulsar'"
                )
            ],
            id="newer broker",
        ),
        pytest.param(
            new(new_queue({"env": "Q"}, clientConfig="west"), clientConfigs={"sqs": "east", "kafka": "kafka-conf"}),
            [
                f"{SPEC}.clientConfigs.sqs: only the stage's own account and region are supported",
                f"{SPEC}.queues[0].clientConfig: only the stage's own account and region are supported",
            ],
            id="client",
        ),
        pytest.param(
            old({"q": old_queue(s3Event="true")}),
            [f"{SPEC}.queues.q.s3Event: expected true or false, not 'true'"],
            id="S3",
        ),
        pytest.param(
            old({"q": old_queue(sns="yes")}), [f"{SPEC}.queues.q.sns: expected true or false, not 'yes'"], id="flag"
        ),
        pytest.param(
            old({"q": old_queue(nameSource={})}),
            [f"{SPEC}.queues.q.nameSource: expected exactly one of envVar, regexPattern, eventSource"],
            id="no source",
        ),
        pytest.param(
            old({"q": old_queue(nameSource=None)}),
            [
                f"{SPEC}.queues.q.nameSource: expected an object, not None",
                f"{SPEC}.queues.q.nameSource: expected exactly one of envVar, regexPattern, eventSource",
            ],
            id="missing source",
        ),
        pytest.param(
            old({"q": old_queue(nameSource={"envVar": "Q", "regexPattern": "Q"})}),
            [f"{SPEC}.queues.q.nameSource: expected exactly one of envVar, regexPattern, eventSource"],
            id="two sources",
        ),
        pytest.param(
            old({"q": old_queue(nameSource={"eventSource": "memes"})}, kind="EcsService", name="shop/memes"),
            [f"{SPEC}.queues.q.nameSource: expected exactly one of envVar, regexPattern"],
            id="event source of a service",
        ),
        pytest.param(
            old({"q": old_queue(nameSource={"regexPattern": "("}, fallbackName="memes")}),
            [
                (
                    f"{SPEC}.queues.q.nameSource.regexPattern: not a regular expression: '(': missing ), unterminated "
                    "subpattern at position 0"
                ),
                f"{SPEC}.queues.q.fallbackName: is allowed only for a variable with an exact name",
            ],
            id="pattern and fallback",
        ),
        pytest.param(
            new(new_queue({"env": "Q", "valueSelector": "idk", "valuePattern": "(", "podFile": "x"})),
            [
                (
                    f"{SPEC}.queues[0].appConfig.queue[0].podFile: unknown field; known here: env, envLike, "
                    "eventSource, fallback, valueSelector, valuePattern, containers"
                ),
                f"{SPEC}.queues[0].appConfig.queue[0].valueSelector: not a jq program: 'idk': unknown",
                (
                    f"{SPEC}.queues[0].appConfig.queue[0].valuePattern: not a regular expression: '(': missing ), "
                    "unterminated subpattern at position 0"
                ),
            ],
            id="newer source",
        ),
        pytest.param(
            new(new_queue()), [f"{SPEC}.queues[0].appConfig.queue: is missing or empty"], id="no newer source"
        ),
        pytest.param(
            new(
                new_queue({"env": "Q", "containers": "main"}),
                restart={"strategy": "isolatePods", "timeout": 10**30},
                drainTimeout=-1,
            ),
            [
                f"{SPEC}.queues[0].appConfig.queue[0].containers: expected a list, not 'main'",
                f"{SPEC}.restart.strategy: only standard is supported",
                f"{SPEC}.restart.timeout: expected at most 4294967295, not {10**30}",
                f"{SPEC}.drainTimeout: expected a whole number from 0 on, not -1",
            ],
            id="restart and drain",
        ),
        pytest.param(
            new(new_queue({"env": "Q", "containers": ["main", 7]}), tmpNameTemplate="tmp-{{RANDOM}}"),
            [
                f"{SPEC}.queues[0].appConfig.queue[0].containers[1]: expected a text, not 7",
                f"{SPEC}.tmpNameTemplate: must start with 'mirrord-', which permissions match",
            ],
            id="template",
        ),
        pytest.param(
            new(new_queue({"env": "Q"}, queueConfig="options")),
            [
                (
                    f"{SPEC}.queues[0].queueConfig: there is no MirrordPropertyList 'options' in namespace default "
                    "or mirrord"
                )
            ],
            id="missing property list",
        ),
        pytest.param(
            {**OLD, "spec": {"queues": {"q": old_queue()}, "consumer": {}}},
            [
                f"{SPEC}.consumer.workloadType: is missing or empty",
                f"{SPEC}.consumer.name: is missing or empty",
            ],
            id="no consumer",
        ),
        pytest.param(
            {"kind": "Deployment"},
            [
                (
                    "document 1.kind: expected MirrordWorkloadQueueRegistry, MirrordSplitConfig or "
                    "MirrordPropertyList, not 'Deployment'"
                )
            ],
            id="another kind",
        ),
        pytest.param(
            {**old({"q": old_queue()}), "apiVersion": "v2"},
            ["document 1.apiVersion: expected queues.mirrord.metalbear.co/v1alpha, not 'v2'"],
            id="another version",
        ),
    ],
)
def test_each_problem_is_named_with_its_path(document, found):
    assert problems(document) == found


@pytest.mark.parametrize(
    ("properties", "found"),
    [
        ({"sns": "yes"}, "value: expected 'true' or 'false', not 'yes'"),
        ({"s3_event": "1"}, "value: expected 'true' or 'false', not '1'"),
        ({"tags": "{"}, "value: not JSON: "),
        pytest.param({"tags": "[" * 2000}, "value: not JSON: ", id="deep"),
        ({"tags": '{"tool":1}'}, "value.tool: expected a text, not 1"),
        ({"color": "red"}, "name: unknown property 'color'; known: sns, s3_event, tags"),
    ],
)
def test_a_problem_of_a_property_is_named(properties, found):
    (problem,) = problems(new(new_queue({"env": "Q"}, queueConfig="options")), property_list(**properties))

    assert problem.startswith(f"document 2.spec.properties[0].{found}")


@pytest.mark.parametrize(
    ("spec", "found"),
    [
        ({"propertiesFrom": [{"configMapRef": {"name": "options"}}]}, f"propertiesFrom: {NOT_READ}"),
        ({"propertiesFrom": [{"prefix": "s", "secretRef": {"name": "options"}}]}, f"propertiesFrom: {NOT_READ}"),
        (
            {"properties": [{"name": "sns", "valueFrom": {"secretKeyRef": {"name": "options", "key": "sns"}}}]},
            f"properties[0].valueFrom: {NOT_READ}",
        ),
        ({"propertyFrom": []}, "propertyFrom: unknown field; known here: properties, propertiesFrom"),
    ],
)
def test_a_property_from_another_resource_is_refused(spec, found):
    queue = new(new_queue({"env": "Q"}, queueConfig="options"))

    assert problems(queue, {**property_list(), "spec": spec}) == [f"document 2.spec.{found}"]


def test_a_list_of_another_namespace_is_not_taken():
    config = in_namespace("shop", new(new_queue({"env": "Q"}, queueConfig="options"), kind="Deployment"))

    assert problems(config, property_list(), property_list("bank")) == [
        f"{SPEC}.queues[0].queueConfig: there is no MirrordPropertyList 'options' in namespace shop or mirrord"
    ]


@pytest.mark.parametrize(
    "document",
    [property_list(), old({"q": old_queue(queueType="RMQ")}), new({"id": "q", "kind": "kafka", "appConfig": {}})],
    ids=["property list", "older", "newer"],
)
def test_a_file_without_a_queue_on_sqs_says_so(document):
    assert problems(document) == [
        "file: holds neither a MirrordWorkloadQueueRegistry nor a MirrordSplitConfig with a queue on SQS"
    ]


def test_a_target_has_one_newer_registry_and_describes_no_queue_twice():
    twice = new(new_queue({"env": "Q"}))

    assert problems(twice, twice) == [
        "lambda/meme-app: has 2 registries; a MirrordSplitConfig must be the only one of its target",
        "lambda/meme-app: queue 'q' is described twice",
    ]


def test_a_problem_is_reported_once():
    assert problems(new(new_queue({"env": "Q", "valueSelector": 5}))) == [
        f"{SPEC}.queues[0].appConfig.queue[0].valueSelector: expected a text, not 5"
    ]


def test_a_problem_in_a_list_has_its_path():
    listed = {"kind": "List", "items": [old({}), {"kind": "List"}, None]}

    assert [line.partition(": ")[0] for line in problems(listed)] == [
        "document 1.items[1].kind",
        "document 1.items[2]",
        "document 1.items[2].kind",
        "document 1.items[0].spec.queues",
    ]


def test_all_problems_are_reported_together():
    assert len(problems(old({"q": old_queue(queueType="rmq", colour="red")}, kind="Pod"), {"kind": "x"}, 7)) == 6


@pytest.mark.parametrize(
    "fallback",
    [
        "--import=data:text/javascript,evil()//orders",
        "https://stranger.example/314159265359/orders",
        "https://sqs.eu-north-1.stranger.example/314159265359/orders",
        "https://sqs.eu-north-1.amazonaws.com@stranger.example/314159265359/orders",
        "https://name.execute-api.eu-north-1.amazonaws.com/314159265359/orders",
        "arn:aws:lambda:eu-north-1:314159265359:orders",
        '{"orders": "orders"}',
        "",
        "orders\n",
    ],
)
def test_a_registry_gives_no_other_text_than_a_queue_to_the_deployed_program(fallback):
    """A variable such as NODE_OPTIONS or HTTPS_PROXY would let users of splitting run programs as the consumer."""
    source = {"env": "NODE_OPTIONS", "fallback": fallback, "valuePattern": "(orders)$"}
    newer, older = new(new_queue(source)), old({"q": old_queue(fallbackName=fallback)})

    text = f"expected the name, URL or ARN of a queue of SQS, not {fallback!r}"
    assert problems(newer) == [f"{SPEC}.queues[0].appConfig.queue[0].fallback: {text}"]
    assert problems(older) == [f"{SPEC}.queues.q.fallbackName: {text}"]
