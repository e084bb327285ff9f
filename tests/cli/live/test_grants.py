"""`signalbox grant`, `signalbox user secret` and live exchanges, against a stage."""

import json
from collections.abc import Iterator

import pytest
from typer.testing import CliRunner

from signalbox.cli.main import app
from signalbox.errors import RejectedError
from signalbox.live.wamp.authentication import StoredSecret
from tests.cli.exchange.stage import PLACE, exchange_stage, signalbox
from tests.cli.exchange.test_declaration import said
from tests.cli.shared.stage import FakeStage, Refusal
from tests.fakes.aws import aws  # noqa: F401 - a fixture

REALM = "xs_alice.fifo"
LOGS = {"user": "bob", "exchange": REALM, "right": "read", "match": "prefix", "uri": "logs."}


@pytest.fixture
def stage(aws) -> Iterator[FakeStage]:  # noqa: F811
    with exchange_stage() as stage:
        known: list[str] = []

        def granted(command):
            if "dry_run" in command:
                return {**_grant(command), **_would(command["uri"])}
            is_new = command["uri"] not in known
            known.append(command["uri"])
            return {**_grant(command), "granted": is_new}

        stage.replies |= {
            "grant": granted,
            "ungrant": lambda command: {**_grant(command), "ungranted": command["uri"] == "logs."},
            "grants": lambda command: [] if "user" in command else [LOGS, {**LOGS, "user": "@lab", "deny": True}],
            "explain": lambda command: EXPLANATIONS if command["user"] == "bob" else [],
            "group_add": lambda command: _members(command, changed=1),
            "group_remove": lambda command: _members(command, changed=2),
            "groups": lambda command: [] if command.get("group") == "none" else [MEMBER],
            "secret": lambda command: {
                "user": command["user"],
                "methods": ["ticket", *["wampcra"] * ("key" in command)],
            },
            "secrets": lambda command: command["secrets"],
        }
        yield stage


ENDED = {"user": "bob", "session": 7, "match": "prefix", "uri": "logs.", "effect": "ends"}
MEMBER = {"exchange": REALM, "group": "lab", "user": "bob"}
REASONS = [
    {"kind": "grant", "effect": "permits", "why": "it matches", "user": "@lab", "right": "read", "match": "exact"},
    {"kind": "role", "effect": "none", "why": "the role gives no right"},
]
REASONS[0]["uri"] = "logs.a"
EXPLAINED = {"user": "bob", "exchange": REALM, "topic": "logs.a", "right": "read", "permitted": True, "groups": ["lab"]}
EXPLANATIONS = [
    {**EXPLAINED, "reasons": REASONS, "more": 3},
    {**EXPLAINED, "permitted": False, "reasons": [], "more": 0},
]


def _grant(command):
    found = {name: command[name] for name in LOGS}
    return found | ({"deny": True} if "deny" in command else {})


def _would(uri):
    return {"dry_run": True, "subscriptions": [ENDED] if uri == "logs." else [], "more": 2}


def _members(command, *, changed):
    found = {"exchange": command["exchange"], "group": command["group"]}
    if "dry_run" in command:
        return {**found, **_would("logs.")}
    return {**found, "changed": command["users"][:changed], "unchanged": command["users"][changed:]}


def test_a_grant_is_added(stage):
    result = signalbox("grant", "add", "bob", REALM, "logs.", "--match", "prefix", "--json")

    assert said(stage) == [{"command": "grant", **LOGS}]
    assert json.loads(result.stdout) == {**LOGS, "granted": True}


def test_without_json_a_grant_is_one_line(stage):
    first, second = (signalbox("grant", "add", "bob", REALM, "logs.a", "--right", "write") for _ in range(2))

    assert first.stdout == second.stdout == "bob may write xs_alice.fifo  exact 'logs.a'\n"
    assert (first.stderr, second.stderr) == (PLACE, f"{PLACE}· the grant existed before\n")


def test_a_grant_is_removed(stage):
    gone = signalbox("grant", "remove", "bob", REALM, "logs.", "--match", "prefix", "--user", "alice")
    never = signalbox("grant", "remove", "bob", REALM, "other")

    assert gone.stdout == "bob may no longer read xs_alice.fifo  prefix 'logs.'\n"
    assert (never.stdout, never.stderr) == ("", f"{PLACE}· there was no such grant\n")
    assert stage.asked_in[0].endswith("-alice")


def test_a_grant_that_is_not_there_is_answered_with_the_nearest(stage):
    stage.replies["grants"] = lambda _: [LOGS]

    never = signalbox("grant", "remove", "bob", REALM, "lgs.", "--match", "prefix")

    assert "there was no such grant; did you mean 'logs.'?" in never.stderr


@pytest.mark.parametrize(
    ("realm", "pattern", "problem"),
    [
        ("xpublic", "a.#", "'xpublic' cannot be live: .* as 'xpublic.fifo'"),
        (REALM, "a b", "^PATTERN: "),
        (REALM, "a-{user}", "^PATTERN: .* are whole words"),
    ],
)
def test_a_grant_that_cannot_be_is_refused_in_the_commands_words(stage, realm, pattern, problem):
    with pytest.raises(RejectedError, match=problem):
        signalbox("grant", "add", "bob", realm, pattern)
    assert stage.asked == []


def test_grants_are_listed(stage):
    assert json.loads(signalbox("grant", "list", "--json").stdout)[0] == LOGS
    lines = [line.split() for line in signalbox("grant", "list").stdout.splitlines()]
    assert ["grant", *LOGS.values()] in lines
    assert ["deny", "@lab", *list(LOGS.values())[1:]] in lines
    assert signalbox("grant", "list", "--of", "bob", "--exchange", REALM).stdout == "no grants\n"
    assert said(stage)[-1] == {"command": "grants", "user": "bob", "exchange": REALM}


def test_a_deny_for_a_group_is_added_and_removed(stage):
    added = signalbox("grant", "add", "@lab", REALM, "logs.", "--match", "prefix", "--deny")
    again = signalbox("grant", "add", "@lab", REALM, "logs.", "--match", "prefix", "--deny")
    removed = signalbox("grant", "remove", "@lab", REALM, "logs.", "--match", "prefix", "--deny")
    never = signalbox("grant", "remove", "@lab", REALM, "other", "--deny")

    assert added.stdout == "@lab is denied to read xs_alice.fifo  prefix 'logs.'\n"
    assert removed.stdout == "@lab is no longer denied to read xs_alice.fifo  prefix 'logs.'\n"
    assert (again.stderr, never.stderr) == (
        f"{PLACE}· the deny existed before\n",
        f"{PLACE}· there was no such deny\n",
    )
    assert said(stage)[0] == {"command": "grant", **LOGS, "user": "@lab", "deny": True}


def test_a_dry_run_prints_the_subscriptions_that_would_change(stage):
    some = signalbox("grant", "add", "bob", REALM, "logs.", "--match", "prefix", "--dry-run")
    none = signalbox("grant", "add", "bob", REALM, "other", "--dry-run")
    members = signalbox("group", "remove", REALM, "lab", "bob", "--dry-run")

    assert ["bob", "7", "prefix", "logs.", "ends"] in [line.split() for line in some.stdout.splitlines()]
    assert some.stdout.splitlines()[-1] == "and 2 more"
    assert none.stdout == "no present subscription would change\n"
    assert members.stdout == some.stdout
    assert said(stage)[0] == {"command": "grant", **LOGS, "dry_run": True}
    assert said(stage)[2] == {
        "command": "group_remove",
        "exchange": REALM,
        "group": "lab",
        "users": ["bob"],
        "dry_run": True,
    }


def test_an_explanation_has_a_line_for_each_reason(stage):
    text = signalbox("grant", "explain", "bob", "logs.a").stdout
    given = ("--exchange", REALM, "--groups", "a,b", "--right", "write", "--json")
    found = json.loads(signalbox("grant", "explain", "bob", "logs.a", *given).stdout)
    nothing = signalbox("grant", "explain", "alice", "logs.a").stdout

    assert text.splitlines() == [
        "bob may read 'logs.a' of xs_alice.fifo",
        "  permits grant     it matches  @lab exact 'logs.a'",
        "  -       role      the role gives no right",
        "  and 3 more that do not apply",
        "bob may not read 'logs.a' of xs_alice.fifo",
    ]
    assert found == EXPLANATIONS
    assert nothing == "no live exchange that you may configure\n"
    asked = {"user": "bob", "topic": "logs.a", "exchange": REALM, "right": "write", "groups": ["a", "b"]}
    assert said(stage)[1] == {"command": "explain", **asked}


def test_members_of_groups_are_changed_and_listed(stage):
    added = signalbox("group", "add", REALM, "lab", "bob", "carol")
    removed = json.loads(signalbox("group", "remove", REALM, "lab", "bob", "--json").stdout)

    assert added.stdout.splitlines() == [
        "bob is now in lab of xs_alice.fifo",
        "carol was already in lab of xs_alice.fifo",
    ]
    assert removed == {"exchange": REALM, "group": "lab", "changed": ["bob"], "unchanged": []}
    assert ["lab", "bob"] in [line.split() for line in signalbox("group", "list", REALM).stdout.splitlines()]
    assert json.loads(signalbox("group", "list", REALM, "lab", "--json").stdout) == [MEMBER]
    assert signalbox("group", "list", REALM, "none").stdout == "no members\n"
    with pytest.raises(RejectedError, match="cannot be live"):
        signalbox("group", "list", "xpublic")


@pytest.mark.parametrize("wampcra", [False, True])
def test_a_secret_is_created_locally_and_only_its_verifier_is_sent(stage, wampcra):
    result = signalbox("user", "secret", "bob", "--json", *["--wampcra"] * wampcra)

    created, (asked,) = json.loads(result.stdout), said(stage)
    kept = StoredSecret(asked["salt"], asked["verifier"], asked.get("key"))
    assert kept.accepts_ticket(created["secret"])
    assert created["secret"] not in json.dumps(asked)
    assert ("key" in asked, "wampcra" in created["methods"]) == (wampcra, wampcra)
    assert "not shown again" in result.stderr


def test_the_secrets_of_many_users_are_sent_two_hundred_at_a_time(stage, tmp_path):
    file = tmp_path / "users.csv"
    file.write_text("user\n" + "".join(f"lee{number:03}\n" for number in range(201)))

    result = signalbox("user", "secret", "bob", "--from", str(file), "--json")

    created, asked = json.loads(result.stdout), said(stage)
    assert [len(one["secrets"]) for one in asked] == [200, 2]
    sent = [one for command in asked for one in command["secrets"]]
    assert (
        [one["user"] for one in created]
        == [one["user"] for one in sent]
        == [*("bob", *(f"lee{number:03}" for number in range(201)))]
    )
    for one, kept in zip(created, sent, strict=True):
        assert StoredSecret(kept["salt"], kept["verifier"]).accepts_ticket(one["secret"])
    assert len({one["secret"] for one in created}) == len(created)


def test_secrets_that_were_replaced_are_printed_when_a_later_page_fails(stage, tmp_path):
    file = tmp_path / "users.csv"
    file.write_text("user\n" + "".join(f"lee{number:03}\n" for number in range(201)))

    def stored(command):
        if len(command["secrets"]) == 1:
            raise Refusal("there is no user 'lee200'", "rejected")
        return command["secrets"]

    stage.replies["secrets"] = stored
    result = CliRunner().invoke(app, ["user", "secret", "--from", str(file), "--aws"])

    assert "lee200" in str(result.exception)
    assert ("lee199" in result.stdout, "lee200" in result.stdout) == (True, False)


def test_without_json_a_secret_has_one_line_per_field(stage):
    lines = signalbox("user", "secret", "bob").stdout.splitlines()

    assert [line.split()[0] for line in lines] == ["user", "secret", "methods"]


def test_an_exchange_is_declared_live_with_the_given_settings(stage):
    signalbox("exchange", "declare", REALM, "--live", "--order-by", "exchange", "--anonymous", "bob", "--keep", "10")
    signalbox("exchange", "declare", REALM, "--keep-for", "never", "--rule", "logs.=100,1h", "--rule", "=,5m")
    signalbox("exchange", "declare", REALM, "--not-live")

    assert [{name: one[name] for name in one if name not in ("command", "exchange")} for one in said(stage)] == [
        {"live": True, "order_by": "exchange", "anonymous": "bob", "retention": {"count": 10}},
        {
            "retention": {"age_seconds": 0},
            "rules": {"logs.": {"count": 100, "age_seconds": 3600}, "": {"age_seconds": 300}},
        },
        {"live": False},
    ]


def test_an_issuer_is_declared_with_its_options(stage, tmp_path):
    several = [{"url": "https://a.example.org", "audience": "a"}]
    (tmp_path / "issuers.json").write_text(json.dumps(several))
    options = ["--issuer", "https://id.example.org", "--audience", "signalbox", "--issuer-label", "lab"]
    options += ["--name-claim", "email", "--role-claim", "role", "--groups-claim", "roles", "--clock-skew", "1m"]
    options += ["--client-id", "page", "--issuer-origin", "https://token.example.org"]
    signalbox("exchange", "declare", REALM, *options)
    signalbox("exchange", "declare", REALM, "--issuer", "")
    signalbox("exchange", "declare", REALM, "--issuers", str(tmp_path / "issuers.json"))

    declared = {
        "url": "https://id.example.org",
        "audience": "signalbox",
        "label": "lab",
        "name_claim": "email",
        "role_claim": "role",
        "groups_claim": "roles",
        "skew_seconds": 60,
        "client_id": "page",
        "origins": ["https://token.example.org"],
    }
    assert [one["issuers"] for one in said(stage)] == [[declared], [], several]


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--audience", "a"], "--issuer: name the issuer"),
        (["--issuer", "", "--audience", "a"], "--issuer: name the issuer"),
        (["--issuer", "https://a.example.org", "--issuers", "FILE"], "--issuers: give either a file or --issuer"),
        (["--issuers", "FILE"], "--issuers: expected a JSON list"),
    ],
)
def test_contradicting_options_of_issuers_are_refused(stage, tmp_path, options, problem):
    (tmp_path / "issuers.json").write_text("{}")
    given = [str(tmp_path / "issuers.json") if one == "FILE" else one for one in options]

    with pytest.raises(RejectedError, match=problem):
        signalbox("exchange", "declare", REALM, *given)
    assert stage.asked == []


@pytest.mark.parametrize("rule", ["logs.", "logs.=many", "logs.=1,soon"])
def test_an_invalid_rule_is_refused(stage, rule):
    with pytest.raises(RejectedError, match="--rule"):
        signalbox("exchange", "declare", REALM, "--rule", rule)
    assert stage.asked == []
