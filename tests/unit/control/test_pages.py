"""Pages of lists that exceed one reply."""

from hypothesis import given
from hypothesis import strategies as st

from signalbox.control.pages import MARKER, ROOM, json_text, listed, page
from signalbox.messages import MAXIMUM_BYTES

LONG = "x" * (ROOM // 3)


def read(entries, *, meanwhile=None):
    """Return all pages of a list; `meanwhile` changes it after the first."""
    pages, after = [], ""
    while True:
        found = page(entries, after=after)
        pages.append(found["result"])
        if found["next"] is None:
            return pages
        after = found["next"]
        if meanwhile is not None and len(pages) == 1:
            meanwhile(entries)


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, ROOM // 2)), unique=True, max_size=20))
def test_all_pages_have_each_entry_once_and_fit_into_a_reply(given):
    entries = [{"name": f"q{number}", "text": "\x01" * (size // 6)} for number, size in given]

    pages = read(entries)

    assert sorted(map(json_text, entries)) == sorted(json_text(one) for found in pages for one in found)
    assert all(len(json_text(found)) <= ROOM for found in pages)


def test_an_entry_that_fits_into_no_reply_is_on_a_page_of_its_own():
    entries = [{"name": "a"}, {"name": "b", "text": "x" * MAXIMUM_BYTES}, {"name": "c"}]

    assert [[one["name"] for one in found] for found in read(entries)] == [["a"], ["b"], ["c"]]


def test_entries_that_begin_alike_are_told_apart():
    entries = [{"text": LONG, "name": str(number)} for number in range(7)]

    assert sorted(one["name"] for found in read(entries) for one in found) == list("0123456")


def test_a_list_that_changes_between_two_pages_still_has_each_entry_that_stays():
    entries = [{"name": f"q{number}", "used_at": 1, "text": LONG} for number in range(9)]

    def change(found):
        found[1]["used_at"] = 2
        found.append({"name": "q00"})
        del found[0]

    pages = read(entries, meanwhile=change)

    assert {f"q{number}" for number in range(1, 9)} <= {one["name"] for found in pages for one in found}


def test_lists_of_an_answer_fit_into_a_reply_together_and_the_rest_is_counted():
    lists = {"first": [LONG] * 2, "second": [LONG] * 2, "third": ["short"]}

    assert listed(**lists) == {"first": [LONG] * 2, "second": [], "third": ["short"], "unlisted": 2}
    assert listed(first=[LONG] * 2) == {"first": [LONG] * 2, "unlisted": 0}


def test_a_marker_is_short_whatever_the_entries_are():
    found = page([{"name": "\\" * MARKER, "text": LONG, "number": number} for number in range(9)], after="")

    assert len(json_text(found)) <= MAXIMUM_BYTES - 4_096
