"""Draw the stages of a split and the phases of a session from their tables: `python -m tests.docs.split_states`."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from signalbox.splitting.model.split import PHASES, STAGES, Phase, Stage

PICTURE = Path(__file__).parents[2] / "docs" / "pictures" / "split-states.svg"
State = StrEnum | None

# The label of each transition; None is the start and the end. A test compares the keys with the tables.
STAGE_MEANING: dict[tuple[State, State], tuple[str, ...]] = {
    (None, Stage.STARTING): ("the first", "session"),
    (Stage.STARTING, Stage.SPLIT): ("the target", "has switched"),
    (Stage.STARTING, Stage.RESTORING): ("no session is left before the target has switched",),
    (Stage.SPLIT, Stage.DRAINING): ("the last session", "has ended"),
    (Stage.DRAINING, Stage.SPLIT): ("a session joins",),
    (Stage.DRAINING, Stage.RESTORING): ("drained, or", "out of time"),
    (Stage.RESTORING, Stage.CLEANING): ("the target", "is back"),
    (Stage.CLEANING, None): ("all queues", "are gone"),
}
PHASE_MEANING: dict[tuple[State, State], tuple[str, ...]] = {
    (None, Phase.STARTING): ("start",),
    (Phase.STARTING, Phase.MATCHING): ("its queues", "exist"),
    (Phase.STARTING, Phase.ENDING): ("stopped, silent, refused by AWS, or the target took too long",),
    (Phase.MATCHING, Phase.READY): ("filters are active", "everywhere"),
    (Phase.MATCHING, Phase.ENDING): ("stopped, silent, or its filter was stopped",),
    (Phase.READY, Phase.ENDING): ("stopped, silent,", "a slow filter"),
    (Phase.ENDING, None): ("returned", "and deleted"),
}


@dataclass(frozen=True)
class Row:
    """A table of transitions, their labels, and the position of its row in the picture."""

    title: str
    kind: str
    table: Mapping[State, frozenset[State]]
    meaning: Mapping[tuple[State, State], tuple[str, ...]]
    y: int
    width: int = 92

    @property
    def states(self) -> list[State]:
        return [state for state in self.table if state is not None]

    @property
    def transitions(self) -> list[tuple[State, State]]:
        return [(one, other) for one, others in self.table.items() for other in sorted(others, key=str)]


ROWS = (
    Row("A split", "stage", STAGES, STAGE_MEANING, 150),
    Row("Each of its sessions", "phase", PHASES, PHASE_MEANING, 350),
)
FIRST, STEP, HEIGHT = 200, 195, 44
HEAD = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1160 HIGH" width="1160" height="HIGH" role="img" \
aria-labelledby="title">
  <title id="title">TITLE</title>
  <style>
    :root { --paper: #ffffff; --ink: #1f2328; --soft: #59636e; --stage: #fff1e0; --phase: #e4f0fb; --final: #e6f4ea; }
    @media (prefers-color-scheme: dark) {
      :root { --paper: #0d1117; --ink: #e6edf3; --soft: #9aa4af; --stage: #3a2a12; --phase: #10304d; --final: #12351f; }
    }
    text { font-family: system-ui, -apple-system, "Segoe UI", "Liberation Sans", sans-serif; font-size: 13px; }
    text { fill: var(--ink); text-anchor: middle; }
    .row { font-weight: 600; text-anchor: start; }
    .name { font-weight: 600; }
    .why { font-size: 12px; fill: var(--soft); paint-order: stroke; stroke: var(--paper); stroke-width: 4px; }
    .box { stroke: var(--soft); rx: 6; }
    .stage { fill: var(--stage); } .phase { fill: var(--phase); } .final { fill: var(--final); }
    .arrow { fill: none; stroke: var(--soft); stroke-width: 1.4; marker-end: url(#head); }
  </style>
  <defs>
    <marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto">
      <path d="M0 0 L8 4 L0 8 Z" fill="#768390"/>
    </marker>
  </defs>
  <rect width="1160" height="HIGH" fill="var(--paper)"/>
"""


def drawn() -> str:
    """Return the picture of the current tables."""
    return picture(ROWS, title="The stages of a split and the phases of a session", height=410)


def picture(rows: Iterable["Row"], *, title: str, height: int) -> str:
    """Return a picture of tables, one below the other."""
    head = HEAD.replace("TITLE", title).replace("HIGH", str(height))
    return head + "".join(text for row in rows for text in _row(row)) + "</svg>\n"


def _row(row: Row) -> Iterator[str]:
    y = row.y
    yield f'  <text class="row" x="20" y="{y - 112}">{row.title}</text>\n'
    arrows = [_arrow(row, before, after) for before, after in row.transitions]
    yield from (arrow for arrow, _ in arrows)
    yield from (label for _, labels in arrows for label in labels)  # above all arrows, so that none crosses a label
    yield f'  <circle cx="62" cy="{y}" r="8" fill="var(--ink)"/>\n'
    if any(None in others for others in row.table.values()):
        end = FIRST + STEP * len(row.states) - 30
        yield f'  <circle cx="{end}" cy="{y}" r="8" fill="none" stroke="var(--ink)"/>\n'
        yield f'  <circle cx="{end}" cy="{y}" r="4" fill="var(--ink)"/>\n'
    for number, state in enumerate(row.states):
        x, kind = FIRST + STEP * number, row.kind if row.table[state] else "final"
        box = f'x="{x - row.width // 2}" y="{y - HEIGHT // 2}" width="{row.width}" height="{HEIGHT}"'
        yield f'  <rect class="box {kind}" {box}/>\n  <text class="name" x="{x}" y="{y + 5}">{state}</text>\n'


def _arrow(row: Row, before: State, after: State) -> tuple[str, list[str]]:
    """Return the arrow of a transition, and the lines of its label."""
    states, y = row.states, row.y
    start = -1 if before is None else states.index(before)
    stop = len(states) if after is None else states.index(after)
    left = 70 if before is None else FIRST + STEP * start + row.width // 2
    right = FIRST + STEP * stop - (38 if after is None else row.width // 2) - 2
    steps = stop - start
    if steps == 1:
        path, x, label = f"M{left} {y} H{right}", (left + right) // 2, y - 8
    else:  # above the boxes if it leads forward, below them if it leads back or to the same box
        side = -1 if steps > 0 else 1
        edge, bend = y + side * HEIGHT // 2, y + side * (HEIGHT // 2 + max(22, 12 * steps**2 - 8))
        aside = 6 * steps or 14  # so that two arrows that end at one box do not meet
        out = 62 if before is None else FIRST + STEP * start + aside
        into = FIRST + STEP * stop - (30 if after is None else aside)
        begin = y + 8 * side if before is None else edge
        end = y + 12 * side if after is None else edge + 2 * side
        path = f"M{out} {begin} C{out} {bend} {into} {bend} {into} {end}"
        x, label = (out + into) // 2, (edge + 3 * bend) // 4 + (-6 if side < 0 else 16)
    lines = row.meaning[before, after]
    heights = [label - 15 * (len(lines) - 1 - number) for number in range(len(lines))]
    labels = [f'  <text class="why" x="{x}" y="{y}">{line}</text>\n' for y, line in zip(heights, lines, strict=True)]
    return f'  <path class="arrow" d="{path}"/>\n', labels


if __name__ == "__main__":
    PICTURE.write_text(drawn())
