"""Each guarantee that a run checks is a sentence of a page."""

import re
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from signalbox.local.files import CHECKOUT
from tests.simulation import guarantees
from tests.simulation.kernel import Kernel
from tests.simulation.mutants import MUTANTS, Mutant
from tests.simulation.queue import SimulatedQueue
from tests.simulation.splitting import SILENT, Handled, SessionCommands, SplittingAccount

CHECKS = sorted(
    {
        check.__name__: check
        for found in vars(guarantees).values()
        if isinstance(found, tuple)
        for check in found
        if callable(check)
    }.items()
)


def plain(text: str) -> str:
    """Return a text in lower case without links, bold type and line breaks."""
    return " ".join(re.sub(r"\[([^]]*)]\([^)]*\)", r"\1", text.replace("**", "")).split()).lower()


def pages() -> Iterator[Path]:
    yield CHECKOUT / "README.md"
    yield from (CHECKOUT / "docs").rglob("*.md")


PAGES = "\n".join(plain(page.read_text(encoding="utf-8")) for page in pages())


@pytest.mark.parametrize("mutant", [one for one in MUTANTS if one.allowed], ids=lambda one: one.name)
def test_a_page_allows_what_an_allowed_mutant_does(mutant: Mutant) -> None:
    assert mutant.allowed in PAGES


@pytest.mark.parametrize("name", [name for name, _ in CHECKS])
def test_a_guarantee_is_a_sentence_of_a_page(name: str) -> None:
    sentences = re.split(r"(?<=\.)\s+", plain(dict(CHECKS)[name].__doc__ or ""))

    unknown = [one for one in sentences if one.rstrip(".") not in PAGES]
    assert [one for one in unknown if not one.startswith(guarantees.CALM.lower())] == []


@pytest.mark.parametrize(
    ("copies", "deployed", "problems"),
    [
        ((("orders.fifo", 0, 100), ("temporary.fifo", 90, 500)), (), 1),
        ((("orders.fifo", 0, 100), ("temporary.fifo", 90, 500)), (60,), 0),
        ((("orders.fifo", 0, 100), ("temporary.fifo", 90, 500)), (40,), 1),
        ((("temporary.fifo", 90, 95), ("other.fifo", 100, 500)), (60,), 1),
        ((("temporary.fifo", 90, 405), ("temporary.fifo", 400, 406)), (), 0),
    ],
    ids=["original", "original, deployed", "original, deployed before the split", "two queues", "five minutes apart"],
)
def test_two_copies_of_a_message_break_a_guarantee_unless_the_page_allows_them(
    copies: tuple[tuple[str, float, float], ...], deployed: tuple[float, ...], problems: int
) -> None:
    account = SplittingAccount(sent={"body": ("orders.fifo", "group")})
    account.deployed = [("orders.fifo", at) for at in deployed]
    for name, sent_at, handled_at in copies:
        queue = SimulatedQueue(Kernel(0), name, {}, {}, {})
        queue.created_at = 0 if name == "orders.fifo" else 50
        account.handled.append(Handled(handled_at, "consumer", "body", queue, sent_at))
    world: Any = SimpleNamespace(account=account)

    assert len(list(guarantees.a_fifo_message_is_handled_once(world))) == problems


# Found by seed 5: a start that came after the longest silence was answered by the record read before.
@pytest.mark.parametrize(
    ("beats", "reason", "lost"),
    [
        ((0, 50, 100), f"{SILENT}1970-01-01T00:00:00+00:00", 1),
        ((0, 83, 93), f"{SILENT}1970-01-01T00:00:00+00:00", 0),
        ((0, 50, 100), "stopped", 1),
        ((0, 50, 120), "stopped", 0),
    ],
    ids=["beats", "beats too late", "another reason", "another reason after silence"],
)
def test_the_end_of_a_session_breaks_a_guarantee_if_it_beats(beats: tuple[float, ...], reason: str, lost: int) -> None:
    ready, ended = ({"session": "ann", "phase": phase, "reason": reason} for phase in ("ready", "ending"))
    answers = [ready] * (len(beats) - 1) + [ended]
    account, kernel = SplittingAccount(), SimpleNamespace(now=0.0)
    world: Any = SimpleNamespace(kernel=kernel, account=account, was_away=lambda *_: False)
    control: Any = SimpleNamespace(ask=lambda *_, **__: answers.pop(0))
    commands = SessionCommands(world, control, [])

    for kernel.now in beats:
        commands.ask("heartbeat", {})

    assert len(account.lost) == lost
