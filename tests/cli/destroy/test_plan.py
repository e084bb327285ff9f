"""The plan of a removal: order, what stays, and which resources are the stage's."""

import itertools

import pytest

from signalbox.cli.destroy.plan import DATA_TYPES, WHY_IT_STAYS, Item, Kind, is_created_at_run_time, planned

TAGS = {"signalbox:stage": "trial", "signalbox:capability": "exchange"}


def item(kind: Kind, name: str = "one") -> Item:
    return Item(kind, name, f"id of {name}")


def test_splits_end_first_and_keys_go_last():
    reverse = [item(kind) for kind in reversed(Kind)]

    plan = planned(reverse, [], everything=False)

    kinds = [one.kind for one in plan.removed]
    assert kinds == list(Kind)
    assert (kinds[0], kinds[-1]) == (Kind.SESSION, Kind.KEY)


@pytest.mark.parametrize("before", [Kind.SESSION, Kind.CLIENT_KEY, Kind.ATTACHMENT])
def test_what_blocks_or_needs_the_stack_goes_before_it(before: Kind):
    order = list(Kind)

    assert order.index(before) < order.index(Kind.STACK)
    for after in (Kind.MAPPING, Kind.QUEUE, Kind.USER, Kind.STATE_STACK):
        assert order.index(after) > order.index(Kind.STACK)


def test_data_stays_unless_everything_is_removed():
    queue, table, key = item(Kind.QUEUE), item(Kind.TABLE), item(Kind.KEY)

    kept, all_gone = (planned([queue], [key, table], everything=everything) for everything in (False, True))

    assert (kept.removed, kept.kept) == ((queue,), (table, key))
    assert (all_gone.removed, all_gone.kept) == ((queue, table, key), ())


def test_the_document_says_why_data_stays():
    plan = planned([Item(Kind.QUEUE, "q", "url", "about 3 messages are lost")], [item(Kind.TABLE)], everything=False)

    assert plan.document() == {
        "remove": [{"kind": "queue", "name": "q", "note": "about 3 messages are lost"}],
        "stays": [{"kind": "table", "name": "one", "why": WHY_IT_STAYS[Kind.TABLE]}],
    }


def test_every_kind_of_data_has_its_reason():
    assert set(WHY_IT_STAYS) == {*DATA_TYPES.values(), Kind.STATE_STACK}


@pytest.mark.parametrize(
    ("tags", "expected"),
    [
        pytest.param(TAGS, True, id="run-time"),
        pytest.param({**TAGS, "signalbox:stage": "trial2"}, False, id="another-stage"),
        pytest.param({"signalbox:stage": "trial"}, False, id="of-the-template"),
        pytest.param({**TAGS, "aws:cloudformation:stack-name": "trial"}, False, id="of-a-stack"),
        pytest.param({}, False, id="somebody's"),
    ],
)
def test_tags_decide_whose_a_resource_is(tags: dict[str, str], *, expected: bool):
    assert is_created_at_run_time(tags, stage="trial") is expected


def test_plans_do_not_depend_on_the_order_of_discovery():
    items = [item(Kind.QUEUE, name) for name in "abc"]

    plans = {planned(order, [], everything=False).removed for order in itertools.permutations(items)}

    assert plans == {tuple(items)}
