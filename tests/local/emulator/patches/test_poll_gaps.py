"""A poller that sleeps receives the next messages when a batch ends."""

import threading

from signalbox.local.emulator.patches.poll_gaps import Gap, Wake

GAP, LONG = Gap(60.0), 30.0


def test_the_end_of_a_batch_ends_the_sleep_of_the_poller():
    wake = Wake(threading.Event())
    slept: list[float] = []
    poller = threading.Thread(target=wake.sleeping(slept.append), args=[GAP], daemon=True)
    poller.start()

    wake.set()

    poller.join(LONG)
    assert not poller.is_alive()
    assert slept == []


def test_the_end_of_a_batch_wakes_the_poller():
    wake = Wake(threading.Event())
    wake.set()

    assert wake.wait(LONG)


def test_a_batch_that_ended_before_a_pass_is_forgotten_by_it():
    wake = Wake(threading.Event())
    wake.set()
    wake.clear()

    assert not wake.wait(0)


def test_other_sleeps_are_not_changed():
    slept: list[float] = []

    wake = Wake(threading.Event())
    wake.set()

    wake.sleeping(slept.append)(1.5)
    wake.sleeping(slept.append)(float(GAP))  # others may sleep as long as the poller

    assert slept == [1.5, 60.0]
