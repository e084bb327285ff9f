"""Benchmark of crossbar's observation map, run in crossbar's own environment.

The patterns and topics are those of `routing.py`: one subscription matches each topic.
"""

import json
import sys
import time

from crossbar.router.observation import UriObservationMap

TOPICS = 200
ROUNDS = 101


def patterns(match: str, size: int) -> list[str]:
    """Return `size` patterns."""
    return [f"trial.n{number}." if match == "prefix" else f"trial..n{number}" for number in range(size)]


def topics(match: str, size: int) -> list[str]:
    """Return the topics to look up."""
    numbers = [round(step * (size - 1) / (TOPICS - 1)) for step in range(TOPICS)]
    return [f"trial.n{number}.log" if match == "prefix" else f"trial.log.n{number}" for number in numbers]


def measured(match: str, size: int) -> float:
    """Return the microseconds per lookup, as the median of all rounds."""
    observations = UriObservationMap()
    for number, pattern in enumerate(patterns(match, size)):
        observations.add_observer(f"session {number}", pattern, match=match)
    requested, rounds = topics(match, size), []
    for _ in range(ROUNDS):
        begun = time.perf_counter()
        for topic in requested:
            found = observations.match_observations(topic)
        rounds.append((time.perf_counter() - begun) / len(requested))
        if len(found) != 1:
            raise AssertionError(found)
    return sorted(rounds)[ROUNDS // 2] * 1e6


def main() -> None:
    """Print the measurements as JSON."""
    sizes = json.loads(sys.argv[1])
    print(json.dumps({match: {size: measured(match, size) for size in sizes} for match in ("prefix", "wildcard")}))


if __name__ == "__main__":
    main()
