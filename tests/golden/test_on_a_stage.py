"""Golden documents at another time, and the forms of items."""

from datetime import UTC, datetime

import pytest

from tests.golden.files import golden
from tests.golden.on_a_stage import AT, differences, moved

LATER = datetime.fromtimestamp(AT + 120, UTC)
ITEM = {"pk": {"S": "exchange#x"}, "sk": {"S": "exchange"}, "version": {"N": "1"}, "live": {"M": {"count": {"N": "1"}}}}
OTHER = {**ITEM, "pk": {"S": "exchange#y"}}


def test_times_move_in_their_units_and_names_are_replaced():
    document = {"at": 1772366400250, "expires_at": {"N": "1772373600"}, "minute#29539440": '{"alice":1772366400250}'}

    assert moved(document, {"alice": "bob"}, to=LATER) == {
        "at": 1772366520250,
        "expires_at": {"N": "1772373720"},
        "minute#29539442": '{"bob":1772366520250}',
    }


@pytest.mark.parametrize("capability", ["exchange", "live", "splitting", "rendezvous"])
def test_golden_items_have_their_own_form(capability):
    items = golden(capability, "items")

    assert differences(items, items) == []


@pytest.mark.parametrize(
    ("item", "difference"),
    [
        ({**ITEM, "name": {"S": "x"}}, "name:S is new"),
        ({**ITEM, "version": {"S": "1"}}, "version:S is new"),
        ({**ITEM, "live": {"M": {"age": {"N": "1"}}}}, "live:M.age:N is new"),
        ({name: ITEM[name] for name in ("pk", "sk", "live")}, "version:N is missing"),
        ({**ITEM, "sk": {"S": "other"}}, "no golden item is of this kind"),
    ],
)
def test_a_new_or_missing_field_is_a_difference(item, difference):
    assert difference in " ".join(differences([item], [ITEM, OTHER]))
    assert differences([ITEM], [ITEM, OTHER]) == []


def test_names_after_a_colon_and_counters_are_data():
    head = {"pk": {"S": "head#x"}, "sk": {"S": "key#a"}, "detour:q": {"N": "1"}}
    minute = {"pk": {"S": "queue#q"}, "sk": {"S": "minute#1"}, "received": {"N": "1"}}

    assert differences([{**head, "detour:other": {"N": "1"}}], [head]) == []
    assert differences([{**minute, "routed": {"N": "1"}}], [minute]) == []
