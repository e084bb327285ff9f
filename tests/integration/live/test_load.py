"""Delivery under load, with cut connections and killed functions: each event once and in order."""

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from random import Random

import pytest

from signalbox.cli.exchange.stage import client_of
from signalbox.cli.shared.deployment import Deployment
from signalbox.clients.exchange.publisher import PublishRequest
from signalbox.live.wamp.patterns import MatchPolicy, TopicPattern
from signalbox.local.stage_folder import StageFolder
from tests.integration.live.followers import Follower, cutting, differences, following
from tests.integration.live.stage import TrialRealm, new_topic
from tests.integration.shared.fault_injection import FaultInjector
from tests.integration.shared.tcp_proxy import tcp_proxy
from tests.patience import wait_for

pytestmark = [pytest.mark.emulator, pytest.mark.release]

GROUPS, TOPICS = 12, 20  # of each topic there are two subscriptions: its own, and that of its group
ROUND_EVENTS, LEAST_ROUNDS = 100, 10
BETWEEN_ROUNDS = 0.5
BETWEEN_CUTS = (1.0, 3.0)
BETWEEN_KILLS = (3.0, 6.0)
LEAST_CUTS, LEAST_KILLS = 8, 4
FUNCTIONS = ("SessionFunctionName", "DeliverFunctionName", "RouteFunctionName")
READY_SECONDS, PUBLISH_SECONDS, END_SECONDS = 600, 300, 900


def test_no_event_is_missing_duplicated_or_out_of_order(
    place: TrialRealm, deployment: Deployment, stage_folder: StageFolder
):
    chance, began = Random(3), time.monotonic()  # noqa: S311 - the same every time
    groups = [[f"{root}.t{number}" for number in range(TOPICS)] for root in (new_topic() for _ in range(GROUPS))]
    published: dict[str, list[object]] = {}
    injector = FaultInjector(stage_folder, [deployment.outputs[name] for name in FUNCTIONS])

    with tcp_proxy(place.url) as line:
        followers = _followers(place, groups, url=line.url(place.url))
        with following(followers):
            _wait(followers, lambda one: one.is_ready, "ready", seconds=READY_SECONDS)
            ready = time.monotonic()
            with (
                cutting(line, between=BETWEEN_CUTS, chance=chance) as cuts,
                injector.continuous_kills(between=BETWEEN_KILLS) as kills,
            ):
                for messages in _rounds(groups, chance, is_over=lambda: _are_enough(cuts(), kills)):
                    _publish(deployment, place.realm, messages)
                    for topic, number in messages:
                        published.setdefault(topic, []).append(number)
                sent = time.monotonic()
            _wait(followers, lambda one: _has_all(one, published), "having all", seconds=END_SECONDS)

    events = sum(map(len, published.values()))
    _tell(
        f"{len(followers)} connections, {GROUPS * TOPICS} topics, {events} events, {cuts()} cuts, {len(kills)} kills, "
        f"{sum(one.client.connections for one in followers)} sessions; ready after {ready - began:.0f} s, published "
        f"in {sent - ready:.0f} s, all there {time.monotonic() - sent:.0f} s later"
    )
    assert [found for one in followers for found in differences(one, published)] == []
    assert [one.skipped for one in followers if one.skipped] == []
    assert sum(one.count for one in followers) == 2 * events
    assert _are_enough(cuts(), kills)


def _followers(place: TrialRealm, groups: Sequence[Sequence[str]], *, url: str) -> list[Follower]:
    """Return for each group a client that follows each of its topics, and one that follows their prefix."""
    exact = [[TopicPattern.parse(topic) for topic in topics] for topics in groups]
    prefixes = [[TopicPattern.parse(topics[0].rpartition(".")[0] + ".", MatchPolicy.PREFIX)] for topics in groups]
    return [Follower(place.client("subscriber", url=url), patterns) for patterns in (*exact, *prefixes)]


def _rounds(
    groups: Sequence[Sequence[str]], chance: Random, *, is_over: Callable[[], bool]
) -> Iterator[list[tuple[str, int]]]:
    """Yield rounds of messages, random topics with increasing numbers, until there were enough faults among them."""
    deadline = time.monotonic() + PUBLISH_SECONDS
    for round_ in count():
        if round_ >= LEAST_ROUNDS and (is_over() or time.monotonic() > deadline):
            return
        first = round_ * ROUND_EVENTS
        yield [(chance.choice(chance.choice(groups)), number) for number in range(first, first + ROUND_EVENTS)]
        time.sleep(BETWEEN_ROUNDS)


def _are_enough(cuts: int, kills: Sequence[float]) -> bool:
    return cuts >= LEAST_CUTS and len(kills) >= LEAST_KILLS


def _publish(deployment: Deployment, exchange: str, messages: Sequence[tuple[str, int]]) -> None:
    client = client_of(deployment)
    posted = client.publish_all(exchange, (PublishRequest(topic, str(number)) for topic, number in messages))
    assert all(one.message_id for one in posted)


def _has_all(follower: Follower, published: dict[str, list[object]]) -> bool:
    return not any(differences(follower, published))


def _wait(followers: Sequence[Follower], is_so: Callable[[Follower], bool], what: str, *, seconds: float) -> None:
    def all_are() -> bool:
        assert [one.error for one in followers if one.error] == []
        return all(map(is_so, followers))

    try:
        wait_for(all_are, f"all {what}", seconds=seconds, every=0.5)
    except AssertionError:
        _tell(f"{sum(map(is_so, followers))} of {len(followers)} {what}")
        raise


def _tell(text: str) -> None:
    sys.stdout.write(f"\n{text}\n")
