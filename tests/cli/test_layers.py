"""The sizes of the layers of packages, built for Lambda."""

import shutil
from pathlib import Path

import pytest

from stacks.settings.choices import CAPABILITIES
from stacks.shared import packaging

LAMBDA = packaging.target(local=False)


@pytest.mark.release
def test_every_layer_has_at_most_twenty_megabytes(tmp_path):
    for parts in (*((part,) for part in CAPABILITIES), ("exchange", "live"), CAPABILITIES):
        built = packaging.packages(parts, LAMBDA, cache=tmp_path / "cache")
        archive = shutil.make_archive(str(tmp_path / "layer"), "zip", built.path)
        assert Path(archive).stat().st_size <= 20_000_000, parts
