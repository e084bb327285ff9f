"""Runs in crossbar's environment: how long its broker's own map takes to find who is subscribed to a topic.

The patterns and topics are those of `live_routing`: each topic is matched by one subscription.
"""

import json
import sys
import time

from crossbar.router.observation import UriObservationMap

TOPICS = 200
ROUNDS = 5


def patterns(match: str, size: int) -> list[str]:
    """Return so many patterns."""
    return [f"trial.n{number}." if match == "prefix" else f"trial..n{number}" for number in range(size)]


def topics(match: str, size: int) -> list[str]:
    """Return the topics that are asked for."""
    numbers = [round(place * (size - 1) / (TOPICS - 1)) for place in range(TOPICS)]
    return [f"trial.n{number}.log" if match == "prefix" else f"trial.log.n{number}" for number in numbers]


def measured(match: str, size: int) -> float:
    """Return the microseconds for a topic, in the median of all rounds."""
    known = UriObservationMap()
    for number, pattern in enumerate(patterns(match, size)):
        known.add_observer(f"session {number}", pattern, match=match)
    asked, rounds = topics(match, size), []
    for _ in range(ROUNDS):
        begun = time.perf_counter()
        for topic in asked:
            found = known.match_observations(topic)
        rounds.append((time.perf_counter() - begun) / len(asked))
        if len(found) != 1:
            raise AssertionError(found)
    return sorted(rounds)[ROUNDS // 2] * 1e6


def main() -> None:
    """Print what was measured, as JSON."""
    sizes = json.loads(sys.argv[1])
    print(json.dumps({match: {size: measured(match, size) for size in sizes} for match in ("prefix", "wildcard")}))


if __name__ == "__main__":
    main()
