"""Finding and replacing queue names in variables."""

import json

import pytest

from signalbox.queues import QueueName
from signalbox.splitting.consumers.environment import NoQueueName, QueueElsewhere, Resolution, Resolver, UnresolvedQueue
from signalbox.splitting.consumers.queue_reference import Home, QueueReference
from signalbox.splitting.consumers.registry import NameSource, SourceKind
from tests.unit.splitting.forwarding.languages import PlainLanguages

RESOLVER = Resolver(PlainLanguages(), Home("314159265359", "eu-north-1"))
URL = "https://sqs.eu-north-1.amazonaws.com/314159265359/memes"
TEMPORARY = {QueueName("memes"): QueueName("mirrord-1"), QueueName("ads"): QueueName("mirrord-2")}


def variable(name: str, **options: object) -> NameSource:
    return NameSource(SourceKind.VARIABLE, name, **options)


def replaced(source: NameSource, environment: dict[str, str]) -> dict[str, str]:
    found = RESOLVER.resolve(source, environment)
    return {one.variable: RESOLVER.replaced(source, one, TEMPORARY) for one in found}


@pytest.mark.parametrize(
    ("text", "name", "other"),
    [
        ("memes", "memes", "x"),
        (URL, "memes", "https://sqs.eu-north-1.amazonaws.com/314159265359/x"),
        ("http://127.0.0.1:4566/000000000000/memes.fifo", "memes.fifo", "http://127.0.0.1:4566/000000000000/x"),
        ("arn:aws:sqs:eu-north-1:314159265359:memes", "memes", "arn:aws:sqs:eu-north-1:314159265359:x"),
    ],
)
def test_a_reference_is_a_name_url_or_arn(text, name, other):
    """URLs since operator 3.108.0."""
    assert QueueReference(text).queue_name == name
    assert QueueReference(text).to(QueueName("x")) == other


@pytest.mark.parametrize(
    "text",
    [
        "orders.fifo",
        URL,
        "https://eu-north-1.queue.amazonaws.com/314159265359/orders",
        "https://vpce-0a-b.sqs.eu-north-1.vpce.amazonaws.com/314159265359/orders",
        "https://sqs.cn-north-1.amazonaws.com.cn/314159265359/orders",
        "https://sqs.eu-north-1.api.aws/314159265359/orders",
        "arn:aws-cn:sqs:cn-north-1:314159265359:orders",
    ],
)
def test_a_name_url_or_arn_of_sqs_is_plain(text):
    assert QueueReference(text).is_plain


def test_a_replaced_variable_keeps_its_form_of_reference():
    assert replaced(variable("Q"), {"Q": "memes", "R": "ads"}) == {"Q": "mirrord-1"}
    assert replaced(variable("Q"), {"Q": URL}) == {"Q": URL.replace("memes", "mirrord-1")}


def test_a_pattern_finds_all_variables_with_matching_names():
    """regexPattern, operator 3.117.0."""
    source = NameSource(SourceKind.VARIABLES_LIKE, "_QUEUE$")

    found = RESOLVER.resolve(source, {"MEME_QUEUE": "memes", "AD_QUEUE": "ads", "PATH": "/bin"})

    assert [(one.variable, one.queue_names) for one in found] == [("AD_QUEUE", ("ads",)), ("MEME_QUEUE", ("memes",))]


def test_a_missing_variable_is_added_with_the_fallback():
    source = variable("Q", fallback="memes")

    assert RESOLVER.resolve(source, {}) == (Resolution("Q", "memes", (QueueName("memes"),), is_added=True),)
    assert replaced(source, {}) == {"Q": "mirrord-1"}
    assert replaced(source, {"Q": "ads"}) == {"Q": "mirrord-2"}


def test_a_json_map_holds_names_as_its_values():
    """namesFromJsonMap."""
    source = variable("Q", selector=".[]")
    value = {"memes": "memes", "ads": URL.replace("memes", "ads"), "retries": 3, "deep": {"memes": "memes"}}

    (found,) = RESOLVER.resolve(source, {"Q": json.dumps(value)})

    assert found.queue_names == ("memes", "ads")
    assert json.loads(RESOLVER.replaced(source, found, TEMPORARY)) == {
        "memes": "mirrord-1",
        "ads": URL.replace("memes", "mirrord-2"),
        "retries": 3,
        "deep": {"memes": "memes"},
    }


def test_a_program_finds_names_in_a_json_value():
    """valueSelector."""
    source = variable("Q", selector=".queues[]")

    assert replaced(source, {"Q": '{"queues": ["memes", "ads"], "other": "x", "retries": 3}'}) == {
        "Q": '{"queues": ["mirrord-1", "mirrord-2"], "other": "x", "retries": 3}'
    }


def test_a_pattern_finds_the_name_inside_a_longer_text():
    """valuePattern, operator 3.169.0: only the group is swapped."""
    source = variable("Q", pattern=r"queue=(?P<value>\w+)")

    assert replaced(source, {"Q": "region=eu&queue=memes&wait=5"}) == {"Q": "region=eu&queue=mirrord-1&wait=5"}


def test_a_value_without_the_pattern_is_left_as_it_is():
    source = variable("Q", selector=".[]", pattern="queue=(.*)")

    assert replaced(source, {"Q": '{"a": "queue=memes", "b": "other"}'}) == {
        "Q": '{"a": "queue=mirrord-1", "b": "other"}'
    }


def test_a_stages_account_and_region_are_those_of_its_queues():
    assert Home.of_arn("arn:aws:sqs:eu-north-1:314159265359:mirrord-") == RESOLVER.home


def test_a_value_outside_the_environment_is_resolved():
    found = RESOLVER.in_value(NameSource(SourceKind.VALUE), "QUEUE", "memes")

    assert found == Resolution("QUEUE", "memes", (QueueName("memes"),))


@pytest.mark.parametrize(
    ("source", "environment", "reason"),
    [
        (variable("Q"), {}, "no variable 'Q', and there is no fallback"),
        (NameSource(SourceKind.VARIABLES_LIKE, "^Q"), {}, "no variable like '\\^Q'"),
        (variable("Q"), {"Q": ""}, "'Q' holds no queue name"),
        (variable("Q"), {"Q": "https://sqs.example/"}, "'Q' holds no queue name"),
    ],
    ids=["missing", "none like it", "empty", "URL without name"],
)
def test_a_source_without_a_queue_name_is_named_in_the_error(source, environment, reason):
    """Operator 3.100: a container without variables."""
    with pytest.raises(UnresolvedQueue, match=reason):
        RESOLVER.resolve(source, environment)


@pytest.mark.parametrize(
    ("value", "names"),
    [
        ("https://sqs.eu-north-1.amazonaws.com/271828182845/memes", "account 271828182845 in region eu-north-1"),
        ("https://sqs.us-west-2.amazonaws.com/314159265359/memes", "account 314159265359 in region us-west-2"),
        ("https://sqs-fips.us-west-2.amazonaws.com/314159265359/memes", "region us-west-2"),
        ("https://SQS.US-WEST-2.api.aws/314159265359/memes", "region us-west-2"),
        ("https://vpce-1-a.sqs.us-west-2.vpce.amazonaws.com/314159265359/memes", "region us-west-2"),
        ("https://us-west-2.queue.amazonaws.com/314159265359/memes", "region us-west-2"),
        ("https://queue.amazonaws.com/314159265359/memes", "region us-east-1"),
        ("https://sqs.cn-north-1.amazonaws.com.cn/314159265359/memes", "region cn-north-1"),
        ("http://sqs.us-west-2.localhost.localstack.cloud:4566/314159265359/memes", "region us-west-2"),
        ("http://localhost:4566/queue/us-west-2/314159265359/memes", "region us-west-2"),
        ("https://sqs.us-west-2.amazonaws.com/memes", "account unknown in region us-west-2"),
        ("http://localhost:4566/000000000000/memes", "account 000000000000 in region unknown"),
        ("arn:aws:sqs:us-west-2:314159265359:memes", "region us-west-2"),
        ("arn:aws:sqs:eu-north-1:271828182845:memes", "account 271828182845 in region eu-north-1"),
        ("arn:aws:sns:eu-north-1:314159265359:memes", "names a resource of sns"),
    ],
)
@pytest.mark.parametrize(
    ("source", "form"),
    [
        (NameSource(SourceKind.VARIABLES_LIKE, "^Q"), "{}"),
        (variable("Q", selector=".[]"), '{{"a": "ads", "m": "{}"}}'),
        (variable("Q", selector=".queues[]"), '{{"queues": ["{}"]}}'),
        (variable("Q", pattern=r"queue=(\S+)"), "queue={} wait=5"),
        (variable("Q", pattern=r"(\w+) "), "queue={} wait=5"),
    ],
    ids=["like", "JSON map", "program", "pattern", "pattern of the name alone"],
)
def test_a_queue_of_another_account_or_region_is_refused(source, form, value, names):
    """A queue of the same name in the stage's account would be another queue."""
    with pytest.raises(
        QueueElsewhere, match=f"{names}; this stage splits queues of account 314159265359 in region eu-n"
    ):
        RESOLVER.resolve(variable("Q"), {"Q": value})
    with pytest.raises(NoQueueName):  # what a pattern or a program finds is not disclosed
        RESOLVER.resolve(source, {"Q": form.format(value)})


@pytest.mark.parametrize(
    "value",
    [
        r'{"queue":"https:\/\/sqs.eu-north-1.amazonaws.com\/271828182845\/memes"}',
        "https%3A%2F%2Fsqs.eu-north-1.amazonaws.com%2F271828182845%2Fmemes",
        "queue:arn:aws:sqs:eu-north-1:271828182845:memes",
        "aws2-sqs://arn:aws:sqs:eu-north-1:271828182845:memes?delaySeconds=5",
        "sqs.eu-north-1.amazonaws.com/271828182845/memes",
        "eu-north-1:271828182845:memes",
        "us-west-2:314159265359:memes",
        "271828182845/memes",
    ],
)
def test_the_account_and_region_before_a_captured_name_count_in_every_form(value):
    with pytest.raises(NoQueueName):
        RESOLVER.resolve(variable("Q", pattern="memes"), {"Q": value})


@pytest.mark.parametrize(
    "source",
    [
        variable("Q", selector=".[]"),
        variable("Q", selector="error"),
        variable("Q", selector="keys[]"),  # texts that the variable does not contain could not be replaced
        variable("Q", selector=".queue", pattern="slow"),
        variable("Q", selector=".queue", pattern="^x"),
        variable("Q", pattern="(:.*)"),
    ],
)
def test_what_a_registry_finds_in_a_value_is_not_told(source):
    """Otherwise a registry could read the variables of a target, which its author need not be permitted to read."""
    value = "[" if source.selector == ".[]" else json.dumps({"queue": "memes", "password": "hunter2"})

    with pytest.raises(UnresolvedQueue) as refusal:
        RESOLVER.resolve(source, {"Q": value})

    assert str(refusal.value) == "variable 'Q' holds no queue name where the registry expects one"


def test_a_fallback_and_a_parameter_name_no_queue_of_another_account_either():
    foreign = URL.replace("314159265359", "271828182845")

    with pytest.raises(QueueElsewhere):
        RESOLVER.resolve(variable("Q", fallback=foreign), {})
    with pytest.raises(QueueElsewhere):
        RESOLVER.in_value(NameSource(SourceKind.VALUE), "the parameter's value", foreign)


@pytest.mark.parametrize(
    ("pattern", "value"),
    [
        (None, "https://sqs.internal.example/314159265359/memes"),
        (None, "https://sqs.eu-north-1.amazonaws.com/314159265359/memes"),
        (None, "https://vpce-1-a.sqs.eu-north-1.vpce.amazonaws.com/314159265359/memes"),
        (None, "http://localhost:9324/queue/memes"),
        (None, "sqs://memes"),
        (None, "arn:aws:sqs:eu-north-1:314159265359:memes"),
        ("memes", "a:b:c:d:memes"),
        ("memes", "314159265359/memes"),
        ("https.*", "url=https://localhost/?Queue=271828182845/memes"),
        ("memes", r"https:\/\/sqs.eu-north-1.amazonaws.com\/314159265359\/memes"),
    ],
)
def test_a_reference_that_states_no_other_place_is_the_stages_own(pattern, value):
    (found,) = RESOLVER.resolve(variable("Q", pattern=pattern), {"Q": value})

    assert found.queue_names == ("memes",)
