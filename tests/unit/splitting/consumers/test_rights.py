"""Property: no registry changes more of a consumer than the names of queues that are split."""

import json

from hypothesis import example, given
from hypothesis import strategies as st

from signalbox.queues import QueueName
from signalbox.splitting.consumers.environment import Resolver, UnresolvedQueue
from signalbox.splitting.consumers.queue_reference import QueueReference
from signalbox.splitting.consumers.registry_file import InvalidRegistry, parse_registries
from signalbox.splitting.consumers.variables import Variables
from tests.unit.splitting.consumers.registries import HOME, new, new_queue
from tests.unit.splitting.forwarding.languages import PlainLanguages

NAMES = {QueueName("orders"): QueueName("mirrord-tmp-1"), QueueName("memes"): QueueName("mirrord-tmp-2")}
VARIABLES = ("Q", "OTHER", "PASSWORD", "NODE_OPTIONS")
URL = f"https://sqs.us-east-1.amazonaws.com/{HOME.account}/orders"
VALUES = (
    "orders",
    "memes",
    URL,
    "hunter2",
    "user:hunter2@host/orders",
    '{"queue": "orders", "key": "hunter2"}',
    "[",
    "",
)
FALLBACKS = (
    "memes",
    URL,
    "--import=data:text/javascript,//orders",
    "http://stranger.example/orders",
    '{"queue": "orders"}',
)
PATTERNS = ("orders|memes", "(.*)", "(hunter2)", "^(.)", "//(orders)", "data:(.*)$", "[^/]*$")

sources = st.fixed_dictionaries(
    {"env": st.sampled_from(VARIABLES)},
    optional={
        "fallback": st.sampled_from(FALLBACKS),
        "valueSelector": st.sampled_from([".[]", ".queue", "keys[]", "error"]),
        "valuePattern": st.sampled_from(PATTERNS),
    },
)
environments = st.dictionaries(st.sampled_from(VARIABLES), st.sampled_from(VALUES))


@example([{"env": "NODE_OPTIONS", "fallback": FALLBACKS[2], "valuePattern": "//(orders)"}], {})
@example([{"env": "NODE_OPTIONS", "fallback": FALLBACKS[3]}], {})
@example([{"env": "Q", "valueSelector": "error"}], {"Q": VALUES[5]})
@given(st.lists(sources, min_size=1, max_size=3), environments)
def test_a_registry_changes_names_of_split_queues_alone(written, environment):
    switched = outcome(written, environment)
    if isinstance(switched, str):
        assert "hunter2" not in switched
        return

    assert environment.keys() <= switched.keys()
    for name, value in switched.items():
        back = value
        for original, temporary in NAMES.items():
            back = back.replace(temporary, original)
        assert plain(back) == plain(environment[name]) if name in environment else QueueReference(back).is_plain


def outcome(written, environment: dict[str, str]) -> dict[str, str] | str:
    """Return the environment after a switch, or the text of a refusal."""
    try:
        (registry,) = parse_registries([new(new_queue(*written))], PlainLanguages())
        variables = Variables(Resolver(PlainLanguages(), HOME), registry.queues[0].sources)
        return variables.switched(environment, NAMES)
    except (InvalidRegistry, UnresolvedQueue) as refusal:
        return str(refusal)


def plain(text: str) -> object:
    """Return a value without the white space of its JSON, which a switch may change."""
    try:
        return json.loads(text)
    except ValueError:
        return text
