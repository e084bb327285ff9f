"""Chains of invocations: every way in which a function can reach itself through queues is on the page, with its bound.

https://docs.aws.amazon.com/lambda/latest/dg/invocation-recursion.html
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping

from tests.infrastructure.templates import ROOT, Templates, as_list

EXCHANGE_QUEUES = "exchange queues"
# Names in policies of queues that are made at run time: the template has no mapping from them to a function.
MADE_AT_RUN_TIME = {
    "arn:<Partition>:sqs:<Region>:<AccountId>:x*": EXCHANGE_QUEUES,
    "arn:<Partition>:sqs:<Region>:<AccountId>:x*.fifo": EXCHANGE_QUEUES,
}
MAPPED_AT_RUN_TIME = {EXCHANGE_QUEUES, "Exchange/Retries", "Exchange/OrderedRetries"}
Graph = Mapping[str, set[str]]


def test_every_chain_through_which_a_function_reaches_itself_is_on_the_page(stage):
    chains = set(cycles(graph(stage)))

    assert chains == set(map(_turned, rows("Chain")))


def test_detection_is_off_for_the_functions_on_the_page_only(stage):
    functions = stage.every("AWS::Lambda::Function")

    allowed = {name for name, one in functions.items() if one["Properties"].get("RecursiveLoop") == "Allow"}

    assert allowed == {function for (function,) in rows("Function")}


def graph(stage: Templates) -> Graph:
    """Return, for every function and queue, those to which messages may go from it."""
    functions = stage.every("AWS::Lambda::Function")
    by_role = {stage.text(one["Properties"]["Role"]): name for name, one in functions.items()}
    edges: dict[str, set[str]] = defaultdict(set)
    for resource in stage.every("AWS::IAM::Policy").values():
        for name in filter(None, (by_role.get(stage.text(role)) for role in resource["Properties"].get("Roles", []))):
            for statement in resource["Properties"]["PolicyDocument"]["Statement"]:
                queues = {_queue(stage.text(one)) for one in as_list(statement["Resource"])}
                actions = as_list(statement["Action"])
                if "sqs:SendMessage" in actions:
                    edges[name] |= queues
                # Commands create mappings of such queues to the function that may receive from them.
                for queue in queues & MAPPED_AT_RUN_TIME if "sqs:ReceiveMessage" in actions else ():
                    edges[queue].add(name)
    for mapping in stage.every("AWS::Lambda::EventSourceMapping").values():
        source, function = (stage.text(mapping["Properties"][key]) for key in ("EventSourceArn", "FunctionName"))
        edges[source].add(function)
    return edges


def cycles(edges: Graph) -> Iterator[tuple[str, ...]]:
    """Yield every cycle without repeated nodes."""
    for start in edges:
        yield from (_turned(path) for path in _paths(edges, (start,)))


def _paths(edges: Graph, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    for following in edges.get(path[-1], ()):
        if following == path[0]:
            yield path
        elif following not in path:
            yield from _paths(edges, (*path, following))


def _turned(path: tuple[str, ...]) -> tuple[str, ...]:
    """Return a cycle from its first node by name, so that a cycle has one form."""
    start = path.index(min(path))
    return (*path[start:], *path[:start])


def _queue(resource: str) -> str:
    return MADE_AT_RUN_TIME.get(resource, resource)


def rows(heading: str) -> list[tuple[str, ...]]:
    """Return the first cells of the page's table with a heading, each as its functions and queues."""
    page = (ROOT / "docs" / "architecture.md").read_text()
    table = page.split(f"| {heading} |", 1)[1].split("\n\n", 1)[0].splitlines()[2:]
    return [tuple(part.strip("` ") for part in re.split("→", line.split("|")[1])) for line in table]
