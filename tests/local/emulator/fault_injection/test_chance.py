"""The same seed draws the same numbers, whatever else happens."""

from tests.fault_injection.chance import Chance

KNOWN = [0.85166, 0.561486, 0.48485]


def draws(seed: int, count: int, rule: str = "failed calls", resource: str = "sqs") -> list[float]:
    chance = Chance(seed)
    return [chance.draw(rule, resource) for _ in range(count)]


def test_the_numbers_depend_on_the_seed_alone_and_not_on_the_process():
    assert [round(number, 6) for number in draws(7, 3)] == KNOWN
    assert draws(7, 100) == draws(7, 100) != draws(8, 100)


def test_each_rule_and_each_resource_has_its_own_numbers():
    chance = Chance(7)
    for _ in range(5):
        chance.draw("failed calls", "dynamodb")
        chance.draw("duplicates", "sqs")

    assert [chance.draw("failed calls", "sqs") for _ in range(3)] == draws(7, 3)
    assert draws(7, 3, resource="dynamodb") != draws(7, 3) != draws(7, 3, rule="duplicates")


def test_one_in_a_hundred_draws_hits():
    chance = Chance(1)

    hits = sum(chance.is_one_in(100, "failed calls", "sqs") for _ in range(20_000))

    assert 150 < hits < 250


def test_every_number_is_picked():
    chance = Chance(1)

    assert {chance.pick(4, "partial", "x") for _ in range(200)} == {0, 1, 2, 3}


def test_shuffled_items_are_the_same_items_in_another_order():
    chance, items = Chance(1), list(range(50))

    shuffled = chance.shuffled(items, "disorder", "x")

    assert sorted(shuffled) == items != shuffled
    assert items == list(range(50))
    assert chance.shuffled([], "disorder", "x") == []
