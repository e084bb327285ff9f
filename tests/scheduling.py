"""The distribution of tests to parallel processes: files that share an expensive fixture run in the same one."""

from xdist.scheduler import LoadFileScheduling

# Each process that runs a test under weather deploys a second stage, so one process runs them all.
IN_WEATHER = frozenset(f"tests/integration/shared/test_{name}.py" for name in ("soak", "verify", "weather"))


class SharedFixtures(LoadFileScheduling):
    """Gives the tests of a file to one process, and those of all files under weather to the same one."""

    def _split_scope(self, nodeid: str) -> str:
        return scope_of(nodeid)


def scope_of(nodeid: str) -> str:
    """Return the name of the tests that one process runs."""
    file = nodeid.partition("::")[0]
    return "weather" if file in IN_WEATHER else file
