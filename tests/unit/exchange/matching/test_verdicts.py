"""The verdicts of bindings on a routing key."""

from signalbox.exchange.matching.verdicts import BindingVerdict, binding_verdicts
from signalbox.exchange.model.topics import RoutingKey

BINDINGS = {
    "xs": [("q_orders", "orders.#", False), ("q_rain", "weather.*", False), ("xs_next", "#", True)],
    "xs_next": [("q_all", "#", False), ("xs", "orders.#", True)],
    "xs_far": [("q_far", "#", False)],
}


def test_each_binding_that_a_message_reaches_has_its_verdict() -> None:
    found = binding_verdicts(lambda name: BINDINGS[name], ["xs"], RoutingKey("orders.new"))

    assert [(one.exchange, one.target, one.matches) for one in found] == [
        ("xs", "q_orders", True),
        ("xs", "q_rain", False),
        ("xs", "xs_next", True),
        ("xs_next", "q_all", True),
        ("xs_next", "xs", True),
    ]


def test_an_exchange_whose_binding_does_not_match_is_not_reached() -> None:
    bindings = {"xs": [("xs_far", "weather.#", True)], "xs_far": BINDINGS["xs_far"]}

    found = binding_verdicts(lambda name: bindings[name], ["xs"], RoutingKey("orders.new"))

    assert found == [BindingVerdict("xs", "xs_far", "weather.#", is_exchange=True, matches=False)]
