"""The settings of live exchanges: changes, defaults and refusals."""

from datetime import timedelta

import pytest

from signalbox.control.delivery import CommandDelivery, Overtaken
from signalbox.control.envelope import InvalidCommand
from signalbox.errors import RejectedError
from signalbox.exchange.control.declaration import ArvadosRealmTaken
from signalbox.exchange.control.errors import NotFound, NotPermitted
from signalbox.exchange.model.control_ports import ChangedMeanwhile
from tests.unit.exchange.control.stage import ALICE, BOB, ExchangeStage

OWN = "xs_alice_logs.fifo"
DEFAULT = {
    "order_by": "publisher",
    "anonymous": None,
    "retention": {"count": 1000, "age_seconds": 86_400},
    "rules": {},
    "issuers": [],
    "arvados": False,
    "arvados_api": None,
}
PROVIDER = {"url": "https://id.example.org", "audience": "signalbox"}


@pytest.fixture
def stage():
    return ExchangeStage()


def test_a_repeated_declaration_does_not_bring_back_what_a_later_one_removed(stage):
    sent = stage.time.now()
    first, later = CommandDelivery(sent), CommandDelivery(sent + timedelta(seconds=1))
    given = {"exchange": OWN, "live": True}
    stage.ask("declare_exchange", **given, anonymous=BOB, delivery=first)
    stage.ask("declare_exchange", **given, anonymous="", delivery=later)

    with pytest.raises(Overtaken, match=f"changed exchange '{OWN}'"):
        stage.ask("declare_exchange", **given, anonymous=BOB, delivery=CommandDelivery(sent, is_repeated=True))

    assert stage.exchanges.records[OWN].live.anonymous is None


def declare(stage, *, user=ALICE, exchange=OWN, **given):
    return stage.ask("declare_exchange", user=user, exchange=exchange, **given)["live"]


def problems(stage, **given):
    with pytest.raises(InvalidCommand) as caught:
        declare(stage, **given)
    return str(caught.value).splitlines()


def test_an_exchange_becomes_live_when_it_is_said_to_be(stage):
    assert declare(stage) is None
    assert declare(stage, live=True) == DEFAULT
    assert stage.kinds() == [("declared", "exchange")] * 2


def test_a_new_exchange_can_be_live_from_the_beginning(stage):
    assert declare(stage, live=True) == DEFAULT


def test_live_settings_are_stored(stage):
    rules = {"logs.": {"count": 10, "age_seconds": 0}, "": {}}

    found = declare(stage, order_by="exchange", retention={"count": 5}, rules=rules)

    assert found == {
        "order_by": "exchange",
        "anonymous": None,
        "retention": {"count": 5, "age_seconds": 86_400},
        "rules": {"logs.": {"count": 10, "age_seconds": None}, "": {"count": None, "age_seconds": None}},
        "issuers": [],
        "arvados": False,
        "arvados_api": None,
    }
    assert declare(stage) == found
    assert declare(stage, live=True) == found


def test_a_limit_of_zero_is_no_limit(stage):
    assert declare(stage, retention={"count": 0, "age_seconds": 0})["retention"] == {"count": None, "age_seconds": None}


def test_rules_take_the_place_of_those_that_were_there(stage):
    declare(stage, rules={"a": {"count": 1}})

    assert declare(stage, rules={"b": {"count": 2}})["rules"] == {"b": {"count": 2, "age_seconds": None}}
    assert declare(stage, rules={})["rules"] == {}


def test_an_exchange_can_stop_being_live(stage):
    declare(stage, live=True)

    assert declare(stage, live=False) is None
    assert declare(stage) is None


def test_administrators_may_set_an_anonymous_user(stage):
    assert declare(stage, user=None, anonymous="bob")["anonymous"] == "bob"
    assert declare(stage, user=None, order_by="topic")["anonymous"] == "bob"
    assert declare(stage, anonymous="")["anonymous"] is None


@pytest.mark.parametrize(
    ("user", "given", "error", "reason"),
    [
        (ALICE, {"anonymous": "bob"}, NotPermitted, "only administrators may set 'anonymous' to user 'bob'"),
        (ALICE, {"arvados": True}, NotPermitted, "only administrators may set 'arvados'"),
        (ALICE, {"arvados": False}, NotPermitted, "only administrators may set 'arvados'"),
        (ALICE, {"issuers": [PROVIDER]}, NotPermitted, "only administrators may set 'issuers'"),
        (BOB, {"live": True}, NotPermitted, None),
        (None, {"anonymous": "carol"}, NotFound, "user 'carol'"),
    ],
)
def test_settings_need_the_rights_of_the_caller_and_an_anonymous_user_that_exists(stage, user, given, error, reason):
    with pytest.raises(error, match=reason):
        declare(stage, user=user, **given)


def test_one_realm_of_a_stage_is_for_arvados(stage):
    other = "xs_alice_more.fifo"
    assert declare(stage, user=None, arvados=True)["arvados"] is True
    assert declare(stage, order_by="exchange")["arvados"] is True

    with pytest.raises(ArvadosRealmTaken, match=f"exchange '{OWN}' is the realm of Arvados' clients"):
        declare(stage, user=None, exchange=other, arvados=True)

    assert declare(stage, user=None, arvados=False)["arvados"] is False
    assert declare(stage, user=None, exchange=other, arvados=True)["arvados"] is True
    assert stage.ports.store.exchanges.arvados_realm() == other


def test_the_cluster_that_verifies_its_own_tokens_is_set_and_removed(stage):
    url = "https://api.example.org"
    assert declare(stage, user=None, arvados=True, arvados_api=url + "/")["arvados_api"] == url
    assert declare(stage, order_by="exchange")["arvados_api"] == url
    assert declare(stage, user=None, arvados_api="")["arvados_api"] is None

    with pytest.raises(NotPermitted, match="only administrators may set 'arvados_api'"):
        declare(stage, arvados_api=url)
    with pytest.raises(RejectedError, match="arvados_api: expected a URL that begins with https://"):
        declare(stage, user=None, arvados_api="http://api.example.org")


@pytest.mark.parametrize("gone", [True, False])
def test_a_realm_that_is_not_live_any_more_leaves_its_place_to_another(stage, gone):
    declare(stage, user=None, arvados=True)
    if gone:
        stage.ask("delete_exchange", user=None, exchange=OWN, force=True)
    else:
        declare(stage, live=False)

    assert declare(stage, user=None, exchange="xs_alice_more.fifo", arvados=True)["arvados"] is True


def test_two_declarations_of_the_realm_for_arvados_at_once_are_retried(stage, monkeypatch):
    exchanges = stage.ports.store.exchanges
    monkeypatch.setattr(exchanges, "arvados_realm", lambda: "xs_alice_first.fifo")

    with pytest.raises(ChangedMeanwhile):
        declare(stage, user=None, arvados=True)


def test_only_ordered_exchanges_can_be_live(stage):
    assert problems(stage, exchange="xs_alice_logs", live=True) == [
        "live: only ordered exchanges can be live; their names end with '.fifo'"
    ]


DEFAULTS = {
    "label": "",
    "name_claim": "sub",
    "role_claim": "",
    "groups_claim": "groups",
    "skew_seconds": 60,
    "client_id": "",
    "origins": [],
}
EVERYTHING = {
    "url": "https://login.example.org/lab/",
    "audience": "api://signalbox",
    "label": "lab",
    "name_claim": "email",
    "role_claim": "realm_access.roles",
    "groups_claim": "https://example.org/groups",
    "skew_seconds": 0,
    "client_id": "page",
    "origins": ["https://token.example.org:8443"],
}


def test_administrators_may_set_issuers(stage):
    assert declare(stage, user=None, issuers=[PROVIDER, EVERYTHING])["issuers"] == [PROVIDER | DEFAULTS, EVERYTHING]
    assert len(declare(stage, order_by="topic")["issuers"]) == 2
    assert declare(stage, user=None, issuers=[EVERYTHING])["issuers"] == [EVERYTHING]
    assert declare(stage, issuers=[])["issuers"] == []


@pytest.mark.parametrize("host", ["127.0.0.1:9", "localhost", "[::1]:80"])
def test_an_issuer_on_the_machine_itself_needs_no_https(stage, host):
    assert declare(stage, user=None, issuers=[PROVIDER | {"url": f"http://{host}"}])["issuers"]


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("http://id.example.org", "begins with https://"),
        ("http://127.0.0.1.example.org", "begins with https://"),
        ("id.example.org", "begins with https://"),
        ("https://", "begins with https://"),
        ("https://id.example.org:port", "is not a URL"),
        ("https://[id", "is not a URL"),
        ("https://id.example.org/a b", "printable ASCII"),
        ("https://id.example.org/\n", "printable ASCII"),
        ("https://id.example.org/ü", "printable ASCII"),
        ("https://id.example.org/" + "x" * 500, "512 characters"),
        ("https://root@id.example.org", "user name"),
        ("https://id.example.org?a=1", "a query"),
        ("https://id.example.org#a", "fragment"),
        ("https://id.example;sandbox", "letters, digits, '-' and '.'"),
        ("https://id.example,script-src", "letters, digits, '-' and '.'"),
    ],
)
def test_the_url_of_an_issuer_can_be_fetched_safely(stage, url, problem):
    (found,) = problems(stage, issuers=[PROVIDER | {"url": url}])

    assert found.startswith("issuers[0].url: ")
    assert problem in found


def test_all_problems_of_issuers_are_reported(stage):
    assert problems(
        stage,
        issuers=[
            {"client": "page", "label": "a_b", "skew_seconds": 301, "name_claim": "a\nb"},
            PROVIDER | {"origins": ["https://example.org/", *["https://example.org"] * 10]},
            PROVIDER,
        ],
    ) == [
        f"issuers[0].client: unknown field; known here: {', '.join([*PROVIDER, *DEFAULTS])}",
        "issuers[0].url: is missing or empty",
        "issuers[0].audience: is missing or empty",
        "issuers[0].label: expected 32 letters, digits and '-' at most, not 'a_b'",
        "issuers[0].name_claim: expected printable characters, 512 at most, not 'a\\nb'",
        "issuers[0].skew_seconds: expected 0 to 300, not 301",
        "issuers[1].origins: expected 10 at most, not 11",
        "issuers[1].origins[0]: expected one such as https://example.org, not 'https://example.org/'",
        "issuers: several have the url 'https://id.example.org': each needs its own",
        "issuers: several have the label '': each needs its own",
    ]
    many = [{"url": f"https://{n}.example.org", "audience": "a", "label": f"l{n}"} for n in range(6)]
    assert problems(stage, issuers=many) == ["issuers: expected 5 at most, not 6"]
    assert problems(stage, live=False, issuers=many) == ["issuers: is allowed for live exchanges only"]


def test_all_problems_are_reported_at_once(stage):
    assert problems(
        stage,
        live="yes",
        order_by="weekday",
        anonymous="no_name",
        retention={"count": 10**9, "days": 1},
        rules={"x" * 300: {"age_seconds": -1}},
    ) == [
        "live: expected true or false, not 'yes'",
        "order_by: is allowed for live exchanges only",
        "anonymous: is allowed for live exchanges only",
        "retention: is allowed for live exchanges only",
        "rules: is allowed for live exchanges only",
    ]
    found = problems(
        stage,
        order_by="weekday",
        anonymous="no_name",
        retention={"count": 10**9, "days": 1},
        rules={"x" * 300: {"age_seconds": -1}, **{f"r{number}": {} for number in range(50)}},
    )
    assert found[0] == "order_by: expected one of topic, publisher, exchange, not 'weekday'"
    assert found[1].startswith("anonymous: user 'no_name'")
    assert found[2:4] == [
        "retention.days: unknown field; known here: count, age_seconds",
        "retention.count: expected 1 to 1000000, or 0 for no limit, not 1000000000",
    ]
    assert found[4] == "rules: expected 50 at most, not 51"
    assert found[5].startswith("rules: prefix 'xxx")
    assert found[6].endswith("age_seconds: expected a whole number from 0 on, not -1")


def test_rules_and_issuers_are_short_since_routers_read_them_all_the_time(stage):
    rules = {"x" * 200 + str(number): {} for number in range(50)}
    issuers = [{"url": f"https://issuer{number}", "audience": "é" * 512, "label": str(number)} for number in range(5)]

    assert problems(stage, rules=rules, issuers=issuers) == [
        "rules: exceeds 8,192 bytes of JSON",
        "issuers: exceeds 8,192 bytes of JSON",
    ]


@pytest.mark.parametrize("prefix", ["a\x01", "\x7f", "a\n"])
def test_a_prefix_is_printable(stage, prefix):
    assert problems(stage, rules={prefix: {}}) == [f"rules: prefix {prefix!r} has unprintable characters"]


def test_a_message_published_by_command_keeps_the_order_that_was_declared(stage):
    declare(stage, order_by="exchange")

    stage.ask("publish", user=ALICE, exchange=OWN, routing_key="a.b", body="x")

    (message,) = stage.sender.sent[OWN]
    assert message.group_id == "exchange"


def test_the_longest_age_of_logs_is_kept_when_it_is_shortened(stage):
    def longest() -> list[int | None]:
        ages = [one.age for one in stage.exchanges.find(OWN).live.earlier]
        return [age and age // timedelta(days=1) for age in ages]

    declare(stage, live=True, rules={"logs.": {"age_seconds": 3 * 86_400}})
    assert longest() == []
    declare(stage, retention={"age_seconds": 60}, rules={})
    assert longest() == [3]
    declare(stage, retention={"age_seconds": 120})
    declare(stage, order_by="topic")
    assert longest() == [3]
    declare(stage, live=False)
    declare(stage, live=True, retention={"age_seconds": 60})
    assert longest() == [3]
    declare(stage, retention={"age_seconds": 0})
    declare(stage, live=False)
    declare(stage, live=True, retention={"age_seconds": 60})
    assert longest() == [None]
