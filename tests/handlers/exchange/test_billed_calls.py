"""What AWS bills for a publication is what the cost report assumes."""

from datetime import UTC, datetime

import pytest

from lambdas.exchange import route_wiring
from signalbox.aws.exchange.exchanges import DynamoUsers
from signalbox.exchange.model.records import User
from signalbox.history.prices import SQS
from signalbox.sarracenia.rights.names import UserName
from signalbox.sarracenia.rights.permissions import Ownership, Role
from tests.fakes.aws import aws, exchange_table, live_table, sqs  # noqa: F401 - fixtures
from tests.handlers.billed_calls import WRITES, billed_units, priced_units
from tests.handlers.exchange.test_route import RouteStage, stage  # noqa: F401 - fixture
from tests.handlers.exchange.test_route_live import REALM, realm, subscribe  # noqa: F401 - fixture

SENDER = "AIDAIT2UOQQY3AUEKVGXU"  # the id that moto gives all callers


def warm(stage: RouteStage, exchange: str) -> None:  # noqa: F811 - a type
    """Route a first message, so that the function knows its sender and the bindings."""
    DynamoUsers(stage.table).put(User(UserName("joe"), Role.SOURCE, Ownership.STRICT, datetime.now(UTC), SENDER))
    stage.publish(exchange, "trial.a", "first")
    stage.route(exchange)


@pytest.mark.parametrize(
    ("exchange", "queue", "what"),
    [("xpublic", "q_log", "publication"), ("xlog", "q_log.fifo", "ordered publication")],
)
def test_a_publication_with_one_copy(stage, exchange, queue, what):  # noqa: F811 - fixture
    name = exchange if what == "publication" else f"{exchange}s.fifo"
    stage.declare(name)
    stage.bind(name, "#", queue=queue)
    warm(stage, name)

    with billed_units() as billed:
        stage.publish(name, "trial.a", "second")
        stage.route(name)
        route_wiring.flush()

    assert billed == priced_units(("exchange", what), ("exchange", "copy"))


def test_a_publication_in_a_live_exchange_with_one_subscriber(realm, live_table):  # noqa: F811 - fixtures
    subscribe(live_table, "trial.a")
    warm(realm, REALM)

    with billed_units() as billed:
        realm.publish(REALM, "trial.a", "second")
        realm.route(REALM)
        route_wiring.flush()

    priced = priced_units(("exchange", "ordered publication"), ("exchange", "logged event"))
    priced[SQS] += 3  # the item of the outbox, which the delivery is billed for
    priced[WRITES] -= 1  # no queue is bound whose counter is written
    assert billed == priced
