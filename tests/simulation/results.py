"""The results of all runs on this machine, and their sums: `python -m tests.simulation.results`."""

import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.simulation.run import Result

RESULTS = Path(".signalbox/reports/simulation.jsonl")
HOURS_OF_YEAR = 8766
SUMMED = ("hours", "seconds", "calls", "messages", "crashes", "outages")


def keep(result: "Result") -> None:
    """Add the result of a run to the file; a repeated seed is kept again, and counted once."""
    row = {
        "capability": result.capability,
        "seed": result.seed,
        "hours": result.hours,
        "seconds": round(result.seconds, 2),
        "calls": result.calls,
        "messages": result.messages,
        "crashes": sum(fault.kind.startswith("killed") for fault in result.faults),
        "outages": result.outages,
        "broken": sorted(result.broken),
    }
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    with RESULTS.open("a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")


def kept() -> list[dict[str, Any]]:
    """Return the newest result of each seed and capability."""
    lines = RESULTS.read_text(encoding="utf-8").splitlines() if RESULTS.exists() else []
    return list({(row["capability"], row["seed"]): row for row in map(json.loads, lines)}.values())


def main() -> None:
    """Print the sums of each capability, and the seeds that break a guarantee."""
    rows = kept()
    for capability in sorted({row["capability"] for row in rows}):
        sums: Counter[str] = Counter()
        for row in rows:
            if row["capability"] == capability:
                sums.update({name: row[name] for name in SUMMED})
        print(f"{capability}: " + ", ".join(f"{sums[name]:,.0f} {name}" for name in SUMMED))
    print(f"{sum(row['hours'] for row in rows) / HOURS_OF_YEAR:.4f} years")
    for row in rows:
        if row["broken"]:
            print(f"BROKEN {row['capability']} {row['seed']}: {', '.join(row['broken'])}")


if __name__ == "__main__":
    main()
