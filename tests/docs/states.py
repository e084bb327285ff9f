"""Draw the states of a rendezvous from the broker's table: `python -m tests.docs.states` writes the picture."""

from collections.abc import Iterator
from pathlib import Path

from signalbox.rendezvous.model.states import TRANSITIONS, OfferState

PICTURE = Path(__file__).parents[2] / "docs" / "pictures" / "states.svg"
Transition = tuple[OfferState | None, OfferState]

# The label of each transition; None is the start. A test compares the keys with the table.
MEANING: dict[Transition, str] = {
    (None, OfferState.PENDING): "parked",
    (None, OfferState.REFUSED): "refused",
    (OfferState.PENDING, OfferState.MATCHED): "a proxy claims it",
    (OfferState.PENDING, OfferState.EXPIRED): "patience ends",
    (OfferState.MATCHED, OfferState.MATCHED): "silent: another proxy claims it",
    (OfferState.MATCHED, OfferState.ANSWERED): "the proxy answers",
    (OfferState.MATCHED, OfferState.EXPIRED): "patience ends",
}
WIDTH, HEIGHT = 130, 44
PLACES: dict[OfferState | None, tuple[int, int]] = {
    None: (60, 92),
    OfferState.PENDING: (240, 92),
    OfferState.MATCHED: (500, 92),
    OfferState.ANSWERED: (770, 92),
    OfferState.REFUSED: (240, 272),
    OfferState.EXPIRED: (500, 192),
}
HEAD = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 850 314" width="850" height="314" role="img" \
aria-labelledby="title">
  <title id="title">The states of a rendezvous</title>
  <style>
    :root { --paper: #ffffff; --ink: #1f2328; --soft: #59636e; --open: #fff1e0; --final: #e6f4ea; }
    @media (prefers-color-scheme: dark) {
      :root { --paper: #0d1117; --ink: #e6edf3; --soft: #9aa4af; --open: #3a2a12; --final: #12351f; }
    }
    text { font-family: system-ui, -apple-system, "Segoe UI", "Liberation Sans", sans-serif; font-size: 13px; }
    text { fill: var(--ink); text-anchor: middle; }
    .name { font-weight: 600; }
    .why { font-size: 12px; fill: var(--soft); paint-order: stroke; stroke: var(--paper); stroke-width: 4px; }
    .box { stroke: var(--soft); rx: 6; }
    .open { fill: var(--open); }
    .final { fill: var(--final); }
    .arrow { fill: none; stroke: var(--soft); stroke-width: 1.4; marker-end: url(#head); }
  </style>
  <defs>
    <marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto">
      <path d="M0 0 L8 4 L0 8 Z" fill="#768390"/>
    </marker>
  </defs>
  <rect width="850" height="314" fill="var(--paper)"/>
"""


def drawn() -> str:
    """Return the picture of the current table."""
    return HEAD + "".join((*_arrows(), *_boxes())) + "</svg>\n"


def transitions() -> list[Transition]:
    """Return the transitions, in the order of the table and then by name."""
    return [(before, after) for before, states in TRANSITIONS.items() for after in sorted(states)]


def _boxes() -> Iterator[str]:
    for state, (x, y) in PLACES.items():
        if state is None:
            yield f'  <circle cx="{x}" cy="{y}" r="8" fill="var(--ink)"/>\n'
            continue
        kind = "open" if TRANSITIONS[state] else "final"
        left, top = x - WIDTH // 2, y - HEIGHT // 2
        yield f'  <rect class="box {kind}" x="{left}" y="{top}" width="{WIDTH}" height="{HEIGHT}"/>\n'
        yield f'  <text class="name" x="{x}" y="{y + 5}">{state}</text>\n'


def _arrows() -> Iterator[str]:
    for before, after in transitions():
        path, x, y = _loop(after) if before is after else _line(before, after)
        yield f'  <path class="arrow" d="{path}"/>\n'
        yield f'  <text class="why" x="{x}" y="{y}">{MEANING[before, after]}</text>\n'


def _loop(state: OfferState) -> tuple[str, int, int]:
    x, y = PLACES[state]
    top = y - HEIGHT // 2
    return f"M{x - 30} {top} C{x - 30} {top - 42} {x + 30} {top - 42} {x + 30} {top - 2}", x, top - 40


def _line(before: OfferState | None, after: OfferState) -> tuple[str, int, int]:
    (x, y), (to_x, to_y) = PLACES[before], PLACES[after]
    reach = 8 if before is None else WIDTH // 2
    if y == to_y:
        return f"M{x + reach} {y} H{to_x - WIDTH // 2 - 2}", (x + reach + to_x - WIDTH // 2) // 2, y - 8
    if x == to_x:
        return f"M{x} {y + HEIGHT // 2} V{to_y - HEIGHT // 2 - 2}", x, (y + to_y) // 2 + 4
    # From the lower right corner, or down from the start, to the left side of the next box.
    out_x, out_y = (x, y + 8) if before is None else (x + 40, y + HEIGHT // 2)
    return f"M{out_x} {out_y} V{to_y} H{to_x - WIDTH // 2 - 2}", (out_x + to_x - WIDTH // 2) // 2, to_y - 8


if __name__ == "__main__":
    PICTURE.write_text(drawn())
