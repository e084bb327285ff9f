"""What a CDK app declares: applied, changed and removed with its stack, and taken back when a deployment fails."""

import json
from contextlib import suppress
from dataclasses import replace

import pytest

from signalbox.errors import RejectedError, UnavailableError
from signalbox.exchange.control.app_declaration import (
    AppBinding,
    AppExchange,
    AppExchanges,
    AppUsers,
    ForeignKey,
    InvalidDeclaration,
    MessagesWaiting,
    read_users,
)
from signalbox.exchange.control.errors import NotPermitted
from signalbox.exchange.control.scheduled_tasks import queue_sources
from signalbox.exchange.model.connections import QueueMissing
from signalbox.exchange.model.control_ports import ChangedMeanwhile
from signalbox.exchange.model.patterns import Pattern
from signalbox.exchange.model.records import QueueSize
from signalbox.queues import QueueName
from signalbox.sarracenia.rights.names import ExchangeName, UserName
from signalbox.sarracenia.rights.permissions import Role
from tests.fakes.exchange import Killed
from tests.unit.exchange.control.stage import ALICE, ExchangeStage

ARNS = "arn:aws:sqs:eu-central-1:1:"
MAIL, SHIP = QueueName("mail"), QueueName("ship.fifo")
KEY = "arn:aws:kms:eu-central-1:1:key/k-1"


class Deployment(ExchangeStage):
    def __init__(self) -> None:
        super().__init__()
        self.sqs.keys = {MAIL: "", SHIP: ""}
        self.commands: list[dict[str, object]] = []

    def exchanges_of_app(self, calls: int | None = None) -> AppExchanges:
        service = self.service if calls is None else self.killed_after(calls)
        return AppExchanges(service.ports, lambda fields: self.ask(**fields, service=service))

    def users_of_app(self) -> AppUsers:
        return AppUsers(self.ports, lambda fields: self.commands.append(dict(fields)))

    def bound(self) -> list[tuple[str, str, str]]:
        return [(one.exchange, one.target.name, str(one.pattern)) for one in self.bindings.bound]


@pytest.fixture
def stage() -> Deployment:
    return Deployment()


def an_exchange(*bindings: AppBinding, name: str = "xbus", keeps: bool = False) -> AppExchange:
    return AppExchange(ExchangeName(name), {}, bindings, keeps)


def to(queue: QueueName, pattern: str, key: str | None = None) -> AppBinding:
    return AppBinding(queue, Pattern.parse(pattern), key)


BEFORE = an_exchange(to(MAIL, "orders.#"), to(SHIP, "orders.paid"))
AFTER = an_exchange(to(MAIL, "orders.new"), to(MAIL, "orders.#"))


def test_bindings_are_there_after_a_deployment_changed_with_it_and_gone_with_it(stage):
    app = stage.exchanges_of_app()

    app.declare(BEFORE)
    assert stage.bound() == [("xbus", "sqs:mail", "orders.#"), ("xbus", "sqs:ship.fifo", "orders.paid")]
    app.declare(AFTER, before=BEFORE)
    assert stage.bound() == [("xbus", "sqs:mail", "orders.#"), ("xbus", "sqs:mail", "orders.new")]
    assert set(stage.queues.records) == {"sqs:mail"}
    app.delete(AFTER)
    assert (stage.bound(), stage.queues.records, stage.exchanges.records) == ([], {}, {})
    assert stage.mappings.retries == set()
    assert {name for name, kind in stage.kinds() if kind == "binding"} == {"declared", "deleted"}


@pytest.mark.parametrize("calls", range(12))
def test_a_deployment_that_is_killed_is_taken_back_without_a_moment_in_which_a_binding_is_missing(stage, calls):
    stage.exchanges_of_app().declare(BEFORE)
    before = set(stage.bound())

    try:
        stage.exchanges_of_app(calls).declare(AFTER, before=BEFORE)
    except Killed:
        assert ("xbus", "sqs:mail", "orders.#") in stage.bound()
    stage.exchanges_of_app().declare(BEFORE, before=AFTER)

    assert set(stage.bound()) == before
    assert set(stage.queues.records) == {"sqs:mail", "sqs:ship.fifo"}


@pytest.mark.parametrize("calls", range(12))
def test_a_first_deployment_that_is_killed_leaves_nothing_behind(stage, calls):
    with suppress(Killed):
        stage.exchanges_of_app(calls).declare(BEFORE)
    stage.exchanges_of_app().delete(BEFORE)

    assert (stage.bound(), stage.queues.records, stage.exchanges.records, stage.sqs.queues) == ([], {}, {}, {})
    assert stage.mappings.retries == set()


def test_a_queue_of_others_with_the_name_of_the_exchange_stays(stage):
    stage.exchanges_of_app().declare(BEFORE)
    stage.exchanges.records.clear()
    stage.sqs.held[QueueName("xbus")] = QueueSize(2)
    stage.sqs.refused[QueueName("xbus")] = "ForeignQueue"

    stage.exchanges_of_app().delete(BEFORE)

    assert QueueName("xbus") in stage.sqs.queues


def test_the_queue_of_an_app_is_neither_restricted_nor_deleted(stage):
    stage.exchanges_of_app().declare(BEFORE)

    assert set(queue_sources(stage.ports)) & {MAIL, SHIP, "mail-dlq"} == set()
    assert [one["name"] for one in stage.ask("status", names=["sqs:*"])["queues"]] == ["sqs:mail", "sqs:ship.fifo"]
    with pytest.raises(RejectedError, match="expected 'q_'"):
        stage.ask("delete_queue", queue="sqs:mail")


@pytest.mark.parametrize(
    ("used", "named", "is_open"),
    [
        ("", None, True),
        ("alias/aws/sqs", None, True),
        ("alias/app", KEY, True),
        ("k-1", KEY, True),
        (KEY, KEY, True),
        ("k-2", KEY, False),
        ("alias/app", None, False),
    ],
)
def test_a_queue_with_a_key_that_the_app_does_not_name_is_refused_before_any_binding(stage, used, named, is_open):
    stage.sqs.keys[SHIP] = used
    wanted = an_exchange(to(MAIL, "orders.#"), to(SHIP, "orders.#", named))

    if is_open:
        stage.exchanges_of_app().declare(wanted)
    else:
        with pytest.raises(ForeignKey, match=r"ship\.fifo.*key_arn"):
            stage.exchanges_of_app().declare(wanted)
    assert len(stage.bound()) == (2 if is_open else 0)


def test_a_queue_that_does_not_exist_is_refused(stage):
    with pytest.raises(QueueMissing, match="gone"):
        stage.exchanges_of_app().declare(an_exchange(to(QueueName("gone"), "#")))


def test_an_exchange_with_messages_is_kept_or_refuses_to_go(stage):
    for keeps in (True, False):
        stage.exchanges_of_app().declare(replace(BEFORE, keeps=keeps))
        stage.sqs.held[QueueName("xbus")] = QueueSize(2)

        if keeps:
            stage.exchanges_of_app().delete(replace(BEFORE, keeps=True))
        else:
            with pytest.raises(MessagesWaiting, match="holds about 2 messages"):
                stage.exchanges_of_app().delete(BEFORE)
        assert len(stage.bound()) == 2


def test_an_exchange_with_another_name_leaves_the_earlier_one_to_its_deletion(stage):
    app, other = stage.exchanges_of_app(), replace(BEFORE, name=ExchangeName("xother"))
    app.declare(BEFORE)
    app.declare(other, before=BEFORE)
    assert len(stage.bound()) == 4

    app.delete(BEFORE)

    assert {exchange for exchange, _, _ in stage.bound()} == {"xother"}
    assert stage.mappings.retries == {"box-exchange-retries"}
    assert set(stage.queues.records) == {"sqs:mail", "sqs:ship.fifo"}


def test_an_exchange_without_live_admits_no_connections_any_more(stage):
    app = stage.exchanges_of_app()
    live = replace(an_exchange(name="xbus.fifo"), live={"live": True, "anonymous": "alice"})

    app.declare(live)
    assert stage.exchanges.records["xbus.fifo"].live.anonymous == ALICE
    app.declare(replace(live, live={}), before=live)

    assert stage.exchanges.records["xbus.fifo"].live is None


def test_what_changes_at_the_same_time_is_repeated(stage):
    app = stage.exchanges_of_app()
    app.declare(BEFORE)

    stage.meanwhile(stage.queues, "forget", lambda: stage.queues.record_heartbeat("sqs:mail", now=stage.time.now()))
    with pytest.raises(ChangedMeanwhile):
        app.delete(an_exchange(to(MAIL, "orders.#")))
    stage.meanwhile(stage.bindings, "bind", lambda: stage.exchanges.records.pop("xbus"))
    with pytest.raises(UnavailableError):
        app.declare(BEFORE)


def test_users_are_there_after_a_deployment_changed_with_it_and_gone_with_it(stage):
    app, guest, lab = stage.users_of_app(), UserName("guest"), UserName("lab")

    app.put({guest: Role.SUBSCRIBER, lab: Role.SUBSCRIBER}, before={})
    app.put({guest: Role.SOURCE}, before={guest: Role.SUBSCRIBER, lab: Role.SUBSCRIBER})
    assert stage.users.users[guest].role is Role.SOURCE
    assert lab not in stage.users.users
    app.remove([guest, ALICE])

    assert guest not in stage.users.users
    assert ALICE in stage.users.users
    assert stage.commands == [
        {"command": command, "user": user}
        for user in (lab, guest)
        for command in ("forget_user", "forget_user", "unbind_user")
    ]


def test_a_user_with_keys_is_not_replaced(stage):
    with pytest.raises(NotPermitted, match=r"alice.*access keys"):
        stage.users_of_app().put({ALICE: Role.SUBSCRIBER}, before={})


def test_a_declaration_is_read_with_all_its_problems():
    text = {"exchange": "xbus", "live": None, "bindings": [{"queue": f"{ARNS}mail", "pattern": "a.#"}], "keeps": True}

    read = AppExchange.parse(json.dumps(text), arn_prefix=ARNS)

    assert read == AppExchange(ExchangeName("xbus"), {}, (to(MAIL, "a.#"),), keeps=True)
    assert AppExchange.parse('{"exchange": "x.fifo", "live": {"live": true}}', arn_prefix=ARNS).live == {"live": True}
    strange = {"exchange": "", "bindings": [{"queue": "arn:aws:sqs:other:1:mail", "pattern": "#.#.#"}]}
    with pytest.raises(InvalidDeclaration) as problems:
        AppExchange.parse(json.dumps(strange), arn_prefix=ARNS)
    assert [line.partition(":")[0] for line in str(problems.value).splitlines()] == [
        "bindings[0].queue",
        "bindings[0].pattern",
        "exchange",
    ]
    for invalid in ("", '{"exchange": "bus"}'):
        with pytest.raises(InvalidDeclaration):
            AppExchange.parse(invalid, arn_prefix=ARNS)


def test_users_are_read_with_all_their_problems():
    assert read_users('{"guest": "subscriber"}') == {UserName("guest"): Role.SUBSCRIBER}
    with pytest.raises(InvalidDeclaration) as problems:
        read_users('{"a_b": "subscriber", "lab": "king"}')
    assert len(str(problems.value).splitlines()) == 2
