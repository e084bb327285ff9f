"""Sessions with tokens of an Arvados cluster, which the cluster itself verifies."""

import pytest

from signalbox.exchange.model.records import LiveSettings, OrderBy
from signalbox.live.arvados.cluster import KEPT_FOR, ClusterUser, is_cluster_token, not_of_cluster
from signalbox.live.identity.tokens import TokenIdentity, TokenProblem, TokenRefusal, VerifiedToken
from signalbox.live.model.state import Elapsed, Session, SessionState
from signalbox.live.session.admission import WRONG_TOKEN
from signalbox.live.session.connection import Refusal
from signalbox.sarracenia.rights.names import UserName
from signalbox.sarracenia.rights.permissions import Role
from tests.fakes.live import REALM, START
from tests.unit.live.arvados.stage import CONNECTION, TOKEN, ArvadosStage

API = "https://api.example.org"
SECRET = "0123456789abcdefghijklmnopqrstuvwxyz0123456789abcd"
CLUSTER_TOKEN = f"v2/zzzzz-gj3su-077z32aux8dg2s1/{SECRET}"
ANN = "zzzzz-tpzed-000000000000001"


@pytest.fixture
def stage() -> ArvadosStage:
    found = ArvadosStage()
    found.world.declare(LiveSettings(order_by=OrderBy.EXCHANGE, arvados=True, arvados_api=API))
    found.cluster[API, CLUSTER_TOKEN] = ClusterUser(ANN, is_active=True)
    return found


@pytest.mark.parametrize("text", [CLUSTER_TOKEN, CLUSTER_TOKEN + "/zzzzz-dz642-000000000000000", SECRET])
def test_a_token_of_a_cluster_has_the_forms_of_arvados(text: str) -> None:
    assert is_cluster_token(text)


@pytest.mark.parametrize("text", ["", "v2/bob/secret", "v2/zzzzz-gj3su-077z32aux8dg2s1/", "eyJh.eyJz.c2ln", "a b" * 20])
def test_no_other_token_is_sent_to_a_cluster(text: str) -> None:
    assert not is_cluster_token(text)


def test_a_user_of_the_cluster_joins_by_uuid_with_the_groups_of_the_stage(stage: ArvadosStage) -> None:
    session = stage.admit(CLUSTER_TOKEN)

    assert isinstance(session, Session)
    assert session.identity is not None
    assert session.token is not None
    assert (session.identity.authid, session.identity.authrole, session.identity.provider) == (
        *(ANN, "subscriber"),
        "arvados",
    )
    assert session.token.groups == ()
    assert session.token.expires_at == stage.world.moment + KEPT_FOR
    assert SECRET not in repr(session)


def test_the_connection_ends_after_an_hour_so_that_the_token_is_verified_again(stage: ArvadosStage) -> None:
    stage.connect(CLUSTER_TOKEN)
    stage.world.moment += KEPT_FOR

    stage.notify(Elapsed())

    stored = stage.world.sessions.find(CONNECTION)
    assert stored is not None
    assert stored.session.state is SessionState.CLOSED


@pytest.mark.parametrize(
    ("found", "problem", "status"),
    [
        (TokenProblem.CLUSTER, TokenProblem.CLUSTER, 401),
        (TokenProblem.CLUSTER_AWAY, TokenProblem.CLUSTER_AWAY, 503),
        (ClusterUser(ANN, is_active=False), TokenProblem.INACTIVE, 401),
        (ClusterUser("source", is_active=True), TokenProblem.CLUSTER, 401),
    ],
)
def test_a_refused_token_has_its_reason(
    stage: ArvadosStage, found: ClusterUser | TokenProblem, problem: TokenProblem, status: int
) -> None:
    stage.cluster[API, CLUSTER_TOKEN] = found

    assert stage.admit(CLUSTER_TOKEN) == Refusal(status, problem.text, f"token: {problem.word}")


def test_tokens_of_the_stage_are_accepted_as_before(stage: ArvadosStage) -> None:
    assert isinstance(stage.admit(TOKEN), Session)
    assert stage.admit("x") == WRONG_TOKEN


def test_without_the_url_of_an_api_no_cluster_is_asked() -> None:
    stage = ArvadosStage()
    stage.cluster["", CLUSTER_TOKEN] = ClusterUser(ANN, is_active=True)

    assert stage.admit(CLUSTER_TOKEN) == WRONG_TOKEN
    assert stage.admit(SECRET) == WRONG_TOKEN


def test_a_user_whose_session_was_killed_joins_again_after_an_hour(stage: ArvadosStage) -> None:
    stage.world.accounts.end_tokens(REALM, UserName(ANN), now=stage.world.moment)

    refused = stage.admit(CLUSTER_TOKEN)
    stage.world.moment += KEPT_FOR

    assert refused == Refusal(401, TokenProblem.ENDED.text, "token: ended")
    assert isinstance(stage.admit(CLUSTER_TOKEN), Session)


@pytest.mark.parametrize(("name", "groups"), [(ANN, ()), ("ann", ("imaging", "zzzzz-j7d0g-secret000000000"))])
def test_a_token_of_an_issuer_has_no_names_of_the_realm_s_cluster(name: str, groups: tuple[str, ...]) -> None:
    token = VerifiedToken(name, "lab", TokenIdentity("https://id.example.org", Role.SUBSCRIBER, groups, START))

    assert not_of_cluster(token, LiveSettings(arvados_api=API)) == TokenRefusal(TokenProblem.CLUSTER_NAME)
    assert not_of_cluster(token, LiveSettings()) == token
