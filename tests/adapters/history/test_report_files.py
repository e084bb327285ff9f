"""Report files, downloaded from the bucket."""

from datetime import date

import pytest

from signalbox.aws.history.report_files import download_report
from signalbox.errors import EffectFailed
from signalbox.history.jobs import FILE_EXTENSIONS, REPORTS

DAY = date(2026, 11, 20)


def test_the_text_picture_and_json_of_a_day_are_downloaded(s3, tmp_path):
    for kind in FILE_EXTENSIONS:
        s3.put_object(Bucket="history", Key=REPORTS["topics"].key(kind, "2026-11-20"), Body=kind.encode())

    found = list(download_report(s3, "history", REPORTS["topics"], [DAY], tmp_path / "topics"))

    assert {path.name: path.read_text() for path in found} == {
        "2026-11-20.txt": "text",
        "2026-11-20.svg": "picture",
        "2026-11-20.json": "json",
    }


def test_a_missing_report_raises_with_its_name(s3, tmp_path):
    with pytest.raises(EffectFailed, match="'reports/topics' of 2026-11-20"):
        list(download_report(s3, "history", REPORTS["topics"], [DAY], tmp_path))
