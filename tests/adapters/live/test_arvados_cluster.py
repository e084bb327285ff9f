"""Users of Arvados clusters over real HTTP: what is asked, what is kept, and answers that are refused."""

import json
from collections.abc import Iterator

import pytest

from signalbox.aws.live.arvados_cluster import CURRENT_USER, KEPT_SECONDS, ArvadosUsers
from signalbox.aws.live.json_documents import JsonDocuments
from signalbox.live.arvados.cluster import ClusterUser
from signalbox.live.identity.tokens import TokenProblem
from tests.fakes.clock import Seconds
from tests.fakes.issuer import Answer, LoopbackIssuer, running_issuer

ANN = "zzzzz-tpzed-000000000000001"
USER = {"uuid": ANN, "is_active": True, "is_admin": False, "email": "ann@example.org"}


def answer(document: object) -> Answer:
    return Answer((json.dumps(document).encode(),))


@pytest.fixture
def cluster() -> Iterator[LoopbackIssuer]:
    with running_issuer() as running:
        running.answers = {CURRENT_USER: answer(USER)}
        yield running


@pytest.fixture
def clock() -> Seconds:
    return Seconds()


@pytest.fixture
def users(clock: Seconds) -> ArvadosUsers:
    return ArvadosUsers(JsonDocuments(allows_loopback=True), now=clock)


def test_the_cluster_names_the_user(users: ArvadosUsers, cluster: LoopbackIssuer) -> None:
    assert users.find(cluster.url, "secret") == ClusterUser(ANN, is_active=True)
    assert cluster.authorizations == ["Bearer secret"]


def test_an_answer_is_kept_for_a_short_time_for_each_token(
    users: ArvadosUsers, cluster: LoopbackIssuer, clock: Seconds
) -> None:
    for token in ("a", "a", "b"):
        users.find(cluster.url, token)
    assert cluster.requests[CURRENT_USER] == 2

    clock.now += KEPT_SECONDS
    users.find(cluster.url, "a")
    assert cluster.requests[CURRENT_USER] == 3


@pytest.mark.parametrize("status", [401, 403])
def test_a_token_that_the_cluster_refuses_is_refused_and_kept(
    users: ArvadosUsers, cluster: LoopbackIssuer, status: int
) -> None:
    cluster.answers[CURRENT_USER] = Answer((b"{}",), status=status)

    assert [users.find(cluster.url, "a") for _ in range(2)] == [TokenProblem.CLUSTER] * 2
    assert cluster.requests[CURRENT_USER] == 1


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (CURRENT_USER, Answer((b"{}",), status=500)),
        (CURRENT_USER, Answer((b"no JSON",))),
    ],
)
def test_a_cluster_that_does_not_answer_is_asked_again(
    users: ArvadosUsers, cluster: LoopbackIssuer, path: str, found: Answer
) -> None:
    right = cluster.answers[path]
    cluster.answers[path] = found
    assert users.find(cluster.url, "a") is TokenProblem.CLUSTER_AWAY

    cluster.answers[path] = right
    assert isinstance(users.find(cluster.url, "a"), ClusterUser)


def test_a_number_of_answers_is_kept_at_most(users: ArvadosUsers, cluster: LoopbackIssuer, monkeypatch) -> None:
    monkeypatch.setattr("signalbox.aws.live.arvados_cluster.MAXIMUM_KEPT", 1)

    for token in ("a", "b", "a"):
        users.find(cluster.url, token)

    assert cluster.requests[CURRENT_USER] == 3


def test_a_token_is_sent_over_https_only(cluster: LoopbackIssuer) -> None:
    assert ArvadosUsers(JsonDocuments()).find(cluster.url, "a") is TokenProblem.CLUSTER_AWAY
    assert cluster.authorizations == []
