"""Exported logs of topics, downloaded from the bucket."""

import pytest

from signalbox.aws.history.log_files import download_logs, has_logs
from signalbox.errors import EffectFailed


def test_the_days_of_selected_topics_are_downloaded(s3, tmp_path):
    for key in ("main/topic=a%2Fb/2026-11-20.log", "main/topic=c/2026-11-20.log", "other/topic=a%2Fb/2026-11-20.log"):
        s3.put_object(Bucket="history", Key=f"logs/{key}", Body=key.encode())

    assert has_logs(s3, "history", "main")
    assert not has_logs(s3, "history", "mai")
    found = list(download_logs(s3, "history", "main", is_selected=lambda topic: topic == "a/b", home=tmp_path))

    assert found == [tmp_path / "main" / "topic=a%2Fb" / "2026-11-20.log"]
    assert found[0].read_text() == "main/topic=a%2Fb/2026-11-20.log"


def test_topics_of_the_longest_names_have_folders_of_their_own(s3, tmp_path):
    """A topic of 255 bytes has 765 characters in an object's key, and files have names of 255 at most."""
    for last in "ab":
        s3.put_object(
            Bucket="history", Key=f"logs/main/topic={'%C3%A9' * 127}{last}/2026-11-20.log", Body=last.encode()
        )

    assert has_logs(s3, "history", "main")
    assert not has_logs(s3, "history", "mai")
    found = list(download_logs(s3, "history", "main", is_selected=lambda _: True, home=tmp_path))

    assert [path.read_text() for path in found] == ["a", "b"]


def test_a_bucket_that_cannot_be_read_is_an_error_with_the_exchange(s3, tmp_path):
    with pytest.raises(EffectFailed, match="exchange 'main'"):
        list(download_logs(s3, "absent", "main", is_selected=lambda _: True, home=tmp_path))
