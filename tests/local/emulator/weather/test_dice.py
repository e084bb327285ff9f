"""The dice: the same seed throws the same numbers, whatever else happens."""

from signalbox.local.emulator.weather.dice import Dice

KNOWN = [0.604923, 0.755333, 0.180482]


def throws(seed: int, count: int, rule: str = "faults", resource: str = "sqs") -> list[float]:
    dice = Dice(seed)
    return [dice.throw(rule, resource) for _ in range(count)]


def test_the_numbers_depend_on_the_seed_alone_and_not_on_the_process():
    assert [round(number, 6) for number in throws(7, 3)] == KNOWN
    assert throws(7, 100) == throws(7, 100) != throws(8, 100)


def test_each_rule_and_each_resource_has_its_own_numbers():
    dice = Dice(7)
    for _ in range(5):
        dice.throw("faults", "dynamodb")
        dice.throw("duplicates", "sqs")

    assert [dice.throw("faults", "sqs") for _ in range(3)] == throws(7, 3)
    assert throws(7, 3, resource="dynamodb") != throws(7, 3) != throws(7, 3, rule="duplicates")


def test_one_in_a_hundred_throws_hits():
    dice = Dice(1)

    hits = sum(dice.is_one_in(100, "faults", "sqs") for _ in range(20_000))

    assert 150 < hits < 250


def test_every_number_is_picked():
    dice = Dice(1)

    assert {dice.pick(4, "partial", "x") for _ in range(200)} == {0, 1, 2, 3}


def test_shuffled_items_are_the_same_items_in_another_order():
    dice, items = Dice(1), list(range(50))

    shuffled = dice.shuffled(items, "disorder", "x")

    assert sorted(shuffled) == items != shuffled
    assert items == list(range(50))
    assert dice.shuffled([], "disorder", "x") == []
