"""The table of procedures: who may call them, the announced features, and the documentation."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from signalbox.live.procedures.table import FEATURES, PROCEDURES, Access
from signalbox.live.rights.grants import NO_RIGHTS, Grant, Rights
from signalbox.live.wamp.features import roles
from signalbox.live.wamp.patterns import TopicPattern
from signalbox.sarracenia.rights.permissions import Right

DOCUMENTS = Path(__file__).parents[4] / "docs"
READER = Rights(frozenset({Right.READ}), ())
ADMIN = Rights(frozenset(Right), (), is_admin=True)


@pytest.mark.parametrize("uri", PROCEDURES)
def test_procedures_are_open_to_joined_sessions_or_to_administrators_and_grantees(uri):
    procedure = PROCEDURES[uri]
    grantee = Rights(frozenset(), (Grant(Right.READ, TopicPattern.parse(uri)),))

    assert procedure.is_permitted(NO_RIGHTS) is (procedure.access is Access.JOINED)
    assert procedure.is_permitted(grantee) is (procedure.access in {Access.JOINED, Access.GRANTED})
    assert procedure.is_permitted(ADMIN)


@pytest.mark.parametrize(
    ("reader", "opened"),
    [
        (READER, {"signalbox.overview"}),
        (replace(READER, is_anonymous=True), set()),
        (replace(READER, denies=(Grant(Right.READ, TopicPattern.parse("secret")),)), set()),
    ],
)
def test_a_role_on_the_realm_opens_the_overview_alone_and_not_to_anonymous_or_denied_users(reader, opened):
    permitted = {uri for uri, one in PROCEDURES.items() if one.is_permitted(reader) and not one.is_permitted(NO_RIGHTS)}

    assert permitted == opened


def test_the_exact_numbers_and_the_pictures_of_the_stage_are_for_administrators():
    administrators = {uri for uri, one in PROCEDURES.items() if one.access is Access.ADMINISTRATORS}

    assert administrators == {"signalbox.activity", "signalbox.report"}


def test_welcome_announces_the_features_of_the_procedures():
    assert roles(FEATURES) == {
        "broker": {
            "features": dict.fromkeys(
                (
                    "event_history",
                    "event_retention",
                    "pattern_based_subscription",
                    "publisher_exclusion",
                    "publisher_identification",
                    "session_meta_api",
                    "subscriber_blackwhite_listing",
                    "subscription_meta_api",
                    "subscription_revocation",
                ),
                True,
            )
        },
        "dealer": {"features": {"session_meta_api": True}},
    }


def test_the_documentation_lists_every_procedure_with_its_permitted_callers():
    documented = {}
    for row in section("live.md", "### Procedures").splitlines():
        if row.startswith("| `"):
            cells = row.split("|")
            who = cells[2].strip()
            access = {"every joined session": Access.JOINED, "administrators": Access.ADMINISTRATORS}.get(who)
            access = access or (Access.READERS if "without a deny" in who else Access.GRANTED)
            documented |= dict.fromkeys(uris(cells[1]), access)

    assert documented == {uri: procedure.access for uri, procedure in PROCEDURES.items()}


def section(page, heading):
    _, _, rest = (DOCUMENTS / page).read_text().partition(f"\n{heading}\n")
    return re.split(r"\n#+ ", rest)[0]


def uris(cell):
    """Yield the URIs in a cell; a name without dots has the namespace of the URI before it."""
    namespace = ""
    for name in re.findall(r"`([^`]+)`", cell):
        namespace = name.rpartition(".")[0] or namespace
        yield name if "." in name else f"{namespace}.{name}"
