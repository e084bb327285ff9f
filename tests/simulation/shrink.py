"""Shrinking of a failing seed: the fewest faults with which the same guarantee is broken, and their story."""

from tests.simulation.minimal import Keys, minimal
from tests.simulation.run import Result, run


def shrunk(result: Result, *, most_runs: int = 200) -> Result:
    """Return a run of the seed with as few faults as can be found that breaks one of the same guarantees."""
    broken = set(result.broken)
    runs = 0

    def fails(keys: Keys) -> bool:
        nonlocal runs
        runs += 1
        return bool(broken & set(run(result.capability, result.seed, chosen=frozenset(keys)).broken))

    keys = tuple(dict.fromkeys(fault.key for fault in result.faults))
    least = minimal(keys, lambda chosen: runs < most_runs and fails(chosen))
    return run(result.capability, result.seed, chosen=frozenset(least), has_story=True)


def story_of(result: Result, *, seconds: float = 60.0) -> list[tuple[float, str, str]]:
    """Return the story around the faults: what happened within some seconds of one."""
    moments = [fault.at for fault in result.faults]
    return [line for line in result.story or () if any(abs(line[0] - moment) <= seconds for moment in moments)]
