"""What the function `control` does for CloudFormation, and what it answers."""

import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any, ClassVar

import pytest

from lambdas.exchange import control, control_wiring, deployment
from lambdas.exchange.control import handler
from signalbox.aws.exchange.exchanges import DynamoUsers
from signalbox.errors import EffectFailed, EffectRefused
from tests.adapters.shared.stubs import ARNS
from tests.fakes.aws import aws, exchange_table, live_table, sqs  # noqa: F401 - fixtures
from tests.fakes.http_endpoint import Handler, serving
from tests.handlers.environment import Context
from tests.handlers.exchange.test_control import ExchangeControlStage, stage  # noqa: F401 - fixtures

EXCHANGE, USERS = "Custom::SignalboxExchange", "Custom::SignalboxUsers"


class Answers(Handler):
    found: ClassVar[list[dict[str, Any]]] = []

    def respond(self) -> None:
        assert not self.headers["Content-Type"]
        self.found.append(json.loads(self.received()))
        self.answer()


@pytest.fixture(scope="module")
def response_url() -> Iterator[str]:
    with serving(Answers) as url:
        yield f"{url}/"


@pytest.fixture
def ask(response_url, stage):  # noqa: F811 - fixtures
    def ask(
        request: str, wanted: object, before: object = None, *, kind: str = EXCHANGE, seconds: int = 30
    ) -> dict[str, Any]:
        """Send a request of CloudFormation; return the answer."""
        event = {
            "RequestType": request,
            "ResponseURL": response_url,
            "StackId": "s",
            "RequestId": "r",
            "LogicalResourceId": "l",
            "ResourceType": kind,
            "ResourceProperties": _properties(wanted),
            **({} if request == "Create" else {"PhysicalResourceId": "p"}),
            **({"OldResourceProperties": _properties(before)} if request == "Update" else {}),
        }
        assert handler(event, Context(1_000 * seconds)) == {}
        return Answers.found.pop()

    return ask


def _properties(declaration: object) -> dict[str, str]:
    return {"ServiceToken": "arn", "Declaration": json.dumps(declaration)}


def an_exchange(*patterns: str, queue: str = "mail") -> dict[str, object]:
    return {"exchange": "xbus", "bindings": [{"queue": ARNS + queue, "pattern": one} for one in patterns]}


def bound(stage: ExchangeControlStage) -> list[tuple[str, str]]:  # noqa: F811 - a value
    return [(one["queue"], one["pattern"]) for one in stage.result("bindings", exchange="xbus")]


def test_bindings_follow_the_stack_of_an_app(ask, stage):  # noqa: F811 - fixtures
    stage.sqs.create_queue(QueueName="mail")
    first, then = an_exchange("orders.#"), an_exchange("orders.new", "returns.#")

    made = ask("Create", first)
    same = {"StackId": "s", "RequestId": "r", "LogicalResourceId": "l"}
    assert made == {**same, "PhysicalResourceId": "xbus", "Status": "SUCCESS", "Reason": ""}
    assert bound(stage) == [("sqs:mail", "orders.#")]
    assert ask("Update", then, first)["PhysicalResourceId"] == "xbus"
    assert bound(stage) == [("sqs:mail", "orders.new"), ("sqs:mail", "returns.#")]
    assert ask("Delete", then)["Status"] == "SUCCESS"
    assert stage.queues("x") == []
    assert stage.queues("mail") == ["mail"]


@pytest.mark.parametrize("declaration", [an_exchange("#.#.#"), an_exchange("#", queue="gone"), {"exchange": "bus"}])
def test_a_refused_declaration_says_why_and_its_deletion_leaves_nothing(ask, stage, declaration):  # noqa: F811 - fixtures
    refused = ask("Create", declaration)

    assert (refused["Status"], refused["PhysicalResourceId"]) == ("FAILED", "r")
    assert refused["Reason"]
    assert ask("Delete", declaration)["Status"] == "SUCCESS"
    assert stage.queues("x") == []


def test_an_update_after_a_refused_one_takes_it_back(ask, stage):  # noqa: F811 - fixtures
    stage.sqs.create_queue(QueueName="mail")
    good, bad = an_exchange("orders.#"), an_exchange("#.#.#")
    ask("Create", good)

    assert ask("Update", bad, good)["Status"] == "FAILED"
    assert ask("Update", good, bad)["Status"] == "SUCCESS"
    assert bound(stage) == [("sqs:mail", "orders.#")]


def test_users_follow_the_stack_of_an_app(ask, stage):  # noqa: F811 - fixtures
    users, first, then = DynamoUsers(stage.table), {"guest": "subscriber", "lab": "source"}, {"guest": "source"}

    assert ask("Create", first, kind=USERS)["PhysicalResourceId"] == "users"
    assert ask("Update", then, first, kind=USERS)["Status"] == "SUCCESS"
    assert [(str(one.name), one.role.value) for one in users.live_only()] == [("guest", "source")]
    assert ask("Update", {"guest": "king"}, then, kind=USERS)["Status"] == "FAILED"
    assert ask("Delete", then, kind=USERS)["Status"] == "SUCCESS"
    assert list(users.live_only()) == []
    assert [str(one.name) for one in users.every()] == ["alice"]


def test_a_stage_without_live_ends_what_it_has_and_forgets_users(ask, stage, monkeypatch):  # noqa: F811 - fixtures
    live = {"exchange": "xbus.fifo", "live": {"live": True}}
    assert ask("Create", live)["Status"] == "SUCCESS"
    monkeypatch.delenv("LIVE_TABLE")
    control_wiring.ports.cache_clear()

    assert "no live exchanges" in ask("Update", live, live)["Reason"]
    assert ask("Update", {"exchange": "xbus.fifo"}, live)["Status"] == "SUCCESS"
    assert stage.result("exchanges")[0]["live"] is False


def test_a_call_that_iam_does_not_permit_yet_is_repeated_while_there_is_time(ask, stage, monkeypatch):  # noqa: F811 - fixtures
    monkeypatch.setattr(deployment, "PAUSE", timedelta(milliseconds=1))
    refusals = [EffectRefused("AccessDenied"), EffectFailed("AccessDenied")]
    execute = control._execute

    def refused_at_first(fields: dict[str, object]) -> object:
        if refusals:
            raise refusals.pop()
        return execute(fields)

    monkeypatch.setattr(control, "_execute", refused_at_first)
    assert ask("Create", {"exchange": "xbus"})["Status"] == "SUCCESS"
    refusals += [EffectRefused("AccessDenied")] * 2
    assert ask("Create", {"exchange": "xbus"}, seconds=0)["Reason"] == "AccessDenied"
    assert len(refusals) == 1


def test_an_unknown_resource_is_refused(ask):
    assert "Custom::SignalboxThings" in ask("Create", {}, kind="Custom::SignalboxThings")["Reason"]
