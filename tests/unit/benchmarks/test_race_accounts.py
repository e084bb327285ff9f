"""The account of a race: which events were to arrive, and which gaps the subscriber can notice."""

from benchmarks.parts.races.accounts import Account, Delivery, Race


def race(*numbers: int, from_first: bool = False, subscribed_at: float = 0.0) -> Race:
    """Return a race of the events 0 to 5, published at the times 0 to 5, of which these arrived."""
    found = Race(from_first, {number: float(number) for number in range(6)}, subscribed_at)
    for number in numbers:
        found.add(Delivery("t", f"id {number}", number))
    return found


def test_all_events_in_order_are_a_perfect_account():
    assert race(0, 1, 2, 3, 4, 5, from_first=True).account() == Account(wanted=6)


def test_a_subscriber_without_the_past_is_to_get_what_was_published_later():
    assert race(4, 5, subscribed_at=3.5).account() == Account(wanted=2)
    assert race(subscribed_at=5.5).account() == Account()
    assert race(5, subscribed_at=2.5).account() == Account(wanted=3, lost=2, unnoticed=1)


def test_events_after_the_first_that_arrived_are_to_arrive():
    assert race(1, 4, subscribed_at=4.5).account() == Account(wanted=5, lost=3, unnoticed=2)


def test_repetitions_are_counted_by_publication_id_and_are_in_order():
    assert race(0, 1, 2, 1, 2, 3, 4, 5, from_first=True).account() == Account(wanted=6, twice=2)


def test_an_event_that_first_comes_after_a_later_one_is_out_of_order():
    assert race(0, 2, 1, 3, 5, 4, from_first=True).account() == Account(wanted=6, out_of_order=2)


def test_a_gap_at_which_the_connection_was_lost_is_noticed():
    noticed = race(0, 1, from_first=True)
    noticed.sign()
    noticed.add(Delivery("t", "id 4", 4))
    noticed.add(Delivery("t", "id 5", 5))
    assert noticed.account() == Account(wanted=6, lost=2)

    noticed.deliveries.pop()
    assert noticed.account() == Account(wanted=6, lost=3, unnoticed=1)


def test_a_gap_that_the_client_reports_is_noticed():
    found = race(0, from_first=True)
    found.add(Delivery("t", "id 5", 5, skipped=True))

    assert found.account() == Account(wanted=6, lost=4)
