"""The users of tokens: names, roles and groups, as the claims and the issuer's settings give them."""

import string
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signalbox.exchange.model.issuers import Issuer
from signalbox.live.identity.claims import MAXIMUM_GROUPS, authid_of, user_of
from signalbox.live.identity.compact import is_compact_jwt
from signalbox.live.identity.tokens import TokenIdentity, TokenProblem, TokenRefusal, VerifiedToken
from signalbox.live.identity.trust import trust_of
from signalbox.live.rights.principals import canonical_name
from signalbox.sarracenia.rights.permissions import Role

ISSUER = Issuer("https://id.example.org", "signalbox")
LAB = replace(ISSUER, label="lab")
CLAIMS = {"iss": ISSUER.url, "aud": "signalbox", "sub": "ann", "exp": 2_000_000_000}


def user(issuer: Issuer = ISSUER, **claims: object) -> VerifiedToken:
    found = user_of(CLAIMS | claims, issuer, [issuer], is_access_token=False)
    assert isinstance(found, VerifiedToken), found
    return found


def refusal(issuer: Issuer = ISSUER, **claims: object) -> TokenProblem:
    found = user_of(CLAIMS | claims, issuer, [issuer], is_access_token=False)
    assert isinstance(found, TokenRefusal), found
    return found.problem


def test_a_user_has_the_subject_as_name_and_is_a_subscriber() -> None:
    ends_at = datetime.fromtimestamp(2_000_000_000, UTC)

    identity = TokenIdentity(ISSUER.url, Role.SUBSCRIBER, (), ends_at, 60, trust_of(ISSUER, [ISSUER]))
    assert user() == VerifiedToken("ann", "id.example.org", identity, None)


@pytest.mark.parametrize("name", ["_", "wamp.meta", "wamp"])
def test_a_name_in_which_the_stage_publishes_is_refused(name) -> None:
    """Otherwise an issuer's user would publish as the administrators do."""
    assert refusal(sub=name) is TokenProblem.NAME
    assert user(LAB, sub="_").authid == "_@lab"


@pytest.mark.parametrize(
    ("name", "authid"),
    [
        ("Ann.Lee-2_x:y", "Ann.Lee-2_x:y"),
        ("ann@example.org", "ann@example.org"),
        ("auth0|5f7c", "auth0%7C5f7c"),
        ("a b", "a%20b"),
        ("{user}#~%", "%7Buser%7D%23%7E%25"),
        ("Zoë", "Zo%C3%AB"),
        ("@admins", "%40admins"),
        ("\ud800", "%ED%A0%80"),
        ("a\n", "a%0A"),
    ],
)
def test_a_name_is_written_with_plain_characters(name, authid) -> None:
    assert user(sub=name).authid == authid
    assert user(LAB, sub=name).authid == f"{authid}@lab"


@given(st.text(), st.text())
def test_different_names_stay_different(one, other) -> None:
    first, second = canonical_name(one), canonical_name(other)

    assert (first == second) == (one == other)
    assert set(first) <= set(string.ascii_letters + string.digits + "-._@:%")
    assert not first.startswith("@")


@pytest.mark.parametrize("name", [None, "", 7, ["ann"], "x" * 129, "é" * 22, {"a": 1}])
def test_a_token_without_a_usable_name_is_refused(name) -> None:
    assert refusal(sub=name) is TokenProblem.NAME


def test_a_name_with_its_label_has_at_most_128_characters() -> None:
    assert len(user(LAB, sub="x" * 124).authid) == 128
    assert refusal(LAB, sub="x" * 125) is TokenProblem.NAME


def test_a_name_of_the_issuer_without_a_label_does_not_end_with_the_label_of_another() -> None:
    assert authid_of("ann@lab", ISSUER, [ISSUER, LAB]) is None
    assert authid_of("ann@lab", ISSUER, [ISSUER]) == "ann@lab"
    assert authid_of("ann@laboratory", ISSUER, [ISSUER, LAB]) == "ann@laboratory"
    assert authid_of("ann@lab", LAB, [ISSUER, LAB]) == "ann@lab@lab"


@pytest.mark.parametrize(("verified", "is_accepted"), [(True, True), (False, False), (None, False), ("true", False)])
def test_an_email_address_is_a_name_only_if_it_is_verified(verified, is_accepted) -> None:
    by_email = replace(ISSUER, name_claim="email")
    claims = {"email": "ann@example.org"} | ({} if verified is None else {"email_verified": verified})

    found = user_of(CLAIMS | claims, by_email, [by_email], is_access_token=True)

    assert isinstance(found, VerifiedToken) is is_accepted
    assert is_accepted or found == TokenRefusal(TokenProblem.NAME)


@pytest.mark.parametrize(
    ("given", "role"),
    [
        ("source", Role.SOURCE),
        ("subscriber", Role.SUBSCRIBER),
        (["subscriber", "source"], Role.SOURCE),
        ("admin", Role.SUBSCRIBER),
        (["feeder", "admin"], Role.SUBSCRIBER),
        ("Source", Role.SUBSCRIBER),
        ([], Role.SUBSCRIBER),
        (None, Role.SUBSCRIBER),
    ],
)
def test_a_role_is_one_that_an_issuer_may_give(given, role) -> None:
    assert user(replace(ISSUER, role_claim="role"), role=given).identity.role is role
    assert user(role=given).identity.role is Role.SUBSCRIBER


def test_groups_are_sorted_without_duplicates() -> None:
    assert user(groups=["/lab/b", "a", "a", ""]).identity.groups == ("%2Flab%2Fb", "a")
    assert user(groups="one").identity.groups == ("one",)
    assert user(groups=None).identity.groups == ()


def test_claims_may_be_inside_of_others() -> None:
    issuer = replace(ISSUER, role_claim="realm_access.roles", groups_claim="https://example.org/groups")
    claims = {"realm_access": {"roles": ["source"]}, "https://example.org/groups": ["a"]}

    assert user(issuer, **claims).identity.role is Role.SOURCE
    assert user(issuer, **claims).identity.groups == ("a",)
    assert user(issuer, realm_access="x").identity.role is Role.SUBSCRIBER


@pytest.mark.parametrize(
    "claims",
    [
        {"groups": [f"g{number}" for number in range(MAXIMUM_GROUPS + 1)]},
        {"groups": ["x" * 129]},
        {"groups": [f"{number}{'x' * 120}" for number in range(200)]},
        {"_claim_names": {"groups": "src1"}, "_claim_sources": {"src1": {"endpoint": "https://example.org"}}},
    ],
)
def test_too_many_groups_are_refused(claims) -> None:
    assert refusal(**claims) is TokenProblem.GROUPS


def test_as_many_groups_as_allowed_are_kept() -> None:
    assert len(user(groups=[f"g{number}" for number in range(MAXIMUM_GROUPS)]).identity.groups) == MAXIMUM_GROUPS
    assert user(_claim_names={"other": "src1"}).identity.groups == ()


@pytest.mark.parametrize("groups", [7, {"a": 1}, [7], [["a"]], [None], True])
def test_groups_that_are_no_texts_are_refused(groups) -> None:
    assert refusal(groups=groups) is TokenProblem.CLAIMS


@pytest.mark.parametrize("moment", [None, True, "2000000000", -1, float("nan"), float("inf"), 10**18])
def test_a_time_that_is_none_is_refused(moment) -> None:
    assert refusal(exp=moment) is TokenProblem.CLAIMS
    assert refusal(iat=moment) is TokenProblem.CLAIMS


def test_a_token_is_over_after_its_end_and_the_skew() -> None:
    identity = user(exp=1_000.9).identity

    assert identity.ends_at == datetime.fromtimestamp(1_060, UTC)
    assert identity.is_over(identity.ends_at)
    assert not identity.is_over(identity.ends_at - timedelta(microseconds=1))


@pytest.mark.parametrize(
    ("text", "is_jwt"),
    [("eyJhbGciOiJub25lIn0.e30.", True), ("eyJ.a.b.c.d", True), ("eyJ.a", False), ("a-secret", False), ("", False)],
)
def test_a_ticket_with_the_form_of_a_token_is_one(text, is_jwt) -> None:
    assert is_compact_jwt(text) is is_jwt


def test_an_issuer_without_a_host_is_named_by_its_url() -> None:
    assert Issuer("urn:example", "a").provider == "urn:example"
    assert (LAB.provider, ISSUER.client, replace(ISSUER, client_id="page").client) == ("lab", "signalbox", "page")
