"""The tools of tests with a marker beyond the requirements, prepared before the first of these tests runs."""

import subprocess
from collections.abc import Callable, Mapping, Sequence

import pytest

from signalbox.errors import SignalboxError, UnavailableError
from signalbox.local import kubernetes, setup
from signalbox.local.progress import step
from signalbox.local.spark.jars import jars
from tests.tiers import chromium


def _cluster() -> None:
    """Raise `UnavailableError` unless the cluster is built: that takes minutes, and happens in `make release`."""
    if not kubernetes.is_built():
        raise UnavailableError("it is not built")


Needed = Mapping[str, tuple[str, Callable[[], object]]]
NEEDED: Needed = {
    "emulator": ("emulator", setup.prepare_emulator),
    "browser": ("Chromium", chromium.chromium),
    "spark": ("archives of Spark", lambda: jars(lambda _: None)),
    "kubernetes": ("Kubernetes cluster", _cluster),
}


def prepare(items: Sequence[pytest.Item], *, is_required: bool, needed: Needed = NEEDED) -> None:
    """Prepare the tools of the markers of these tests, with progress.

    Where that fails, as without a network, the tests are skipped with the command to repeat, or raise if required.
    """
    for marker, (name, ready) in needed.items():
        marked = [item for item in items if item.get_closest_marker(marker)]
        if not marked:
            continue
        try:
            with step(f"prepare the {name}"):
                ready()
        except (SignalboxError, OSError, subprocess.CalledProcessError) as problem:
            if is_required:
                raise
            command = "make release PART=kubernetes" if marker == "kubernetes" else "make test"
            reason = f"the {name} could not be prepared, which `{command}` does: {problem}"
            for item in marked:
                item.add_marker(pytest.mark.skip(reason=reason))
