"""The settings of kept queues: who may read what."""

from datetime import timedelta

import pytest

from signalbox.kept.settings import KeepSetting, ReplayRefused, readable
from signalbox.queues import QueueName
from tests.fakes.clock import START

ANN = "AIDAANN"
MEMES = KeepSetting(QueueName("memes"), timedelta(hours=1), START, {ANN: "user/ann"})
DECLARED = KeepSetting(QueueName("sb-q_ann"), timedelta(hours=1), START, {}, declared="q_ann")
REMOVED = KeepSetting(QueueName("old"), None, START)


def test_the_kept_queues_among_others_are_readable_by_their_readers():
    assert readable({"memes": MEMES, "old": REMOVED, "new": None}, ANN) == [MEMES]


def test_a_caller_who_is_no_reader_is_refused_with_the_queues_and_the_remedy():
    with pytest.raises(ReplayRefused, match=r"'memes', 'q_ann': .*--readable-by NAME.* you are AIDABOB"):
        readable({"memes": MEMES, "q_ann": DECLARED}, "AIDABOB")


def test_without_a_kept_queue_the_command_that_keeps_is_named():
    with pytest.raises(ReplayRefused, match=r"no messages are kept of 'old', 'new': `signalbox keep set"):
        readable({"old": REMOVED, "new": None}, ANN)
