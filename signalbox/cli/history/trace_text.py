"""The text of a trace: one screen with local times."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from itertools import groupby
from textwrap import wrap

from signalbox.cli.history.kept_filters import FilterVerdict
from signalbox.exchange.matching.verdicts import BindingVerdict
from signalbox.history.trace.places import Place
from signalbox.history.trace.steps import Step
from signalbox.history.trace.story import Story

SHOWN = 8  # of equal steps, places and bindings; JSON has all
SECOND, MINUTE = 1_000, 60_000
CAPABILITY = 12  # columns of a capability's name
INDENT = 25 + CAPABILITY  # of a reason, below its step
LEAST, NARROW = 40, 4  # columns of a text after what precedes it on its line; the indent of one below it


def story_lines(story: Story, *, width: int | None = None) -> Iterator[str]:
    """Yield the lines of a message's story, wrapped to the width of a terminal; None wraps none."""
    yield f"message {story.message_id}"
    facts = [f"topic {story.topic or repr('')}"] if story.topic is not None else []
    facts += [f"by {story.publisher}"] if story.publisher and story.publisher != "_" else []
    facts += [f"{story.size_bytes:,} bytes"] if story.size_bytes is not None else []
    yield "  ".join([*facts, f"{story.started_at.astimezone():%a %-d %b %Y}"])
    yield ""
    for steps in _runs(story.steps):
        for step in steps[:SHOWN]:
            yield from _step_lines(story, step, width)
        if len(steps) > SHOWN:
            yield f"{'':>{INDENT}}and {len(steps) - SHOWN:,} more like these: `--json` has them"
    yield ""
    yield "now"
    yield from _place_lines(story.places, width)


def verdict_lines(verdicts: Sequence[BindingVerdict]) -> Iterator[str]:
    """Yield the lines of bindings, evaluated now; those that match come first."""
    for exchange, of_exchange in groupby(verdicts, key=lambda one: one.exchange):
        found = sorted(of_exchange, key=lambda one: not one.matches)
        yield ""
        yield f"bindings of {exchange} as they are now"
        for one in found[:SHOWN]:
            yield f"  {'match   ' if one.matches else 'no match'}  {one.target}  {one.pattern or repr('')}"
        if len(found) > SHOWN:
            yield f"  and {len(found) - SHOWN:,} more: `signalbox bindings {exchange}`"


def filter_lines(verdicts: Sequence[FilterVerdict]) -> Iterator[str]:
    """Yield the lines of sessions' filters, evaluated now on kept messages, in the order in which they apply."""
    for (queue, message_id), found in groupby(verdicts, key=lambda one: (one.queue, one.message_id)):
        yield ""
        yield f"filters of {queue} as they are now, on the kept message {message_id}"
        for one in found:
            yield f"  {'match   ' if one.matches else 'no match'}  {one.session} ({one.mode})  {one.reason}"


def _runs(steps: Iterable[Step]) -> Iterator[list[Step]]:
    """Group neighbouring steps of the same kind, such as deliveries to a thousand connections."""

    def kind(step: Step) -> tuple[str, str, str]:
        event = step.event
        return (step.capability, event.kind if event else "", event.outcome if event else "")

    for _, group in groupby(steps, key=kind):
        yield list(group)


def _step_lines(story: Story, step: Step, width: int | None) -> Iterator[str]:
    depth = "  " * step.depth
    head = f"{_time(step.at)}  {_after(story.after_ms(step)):>9}  {step.capability:<{CAPABILITY}}{depth}"
    yield from _fitted(head, step.text, width)
    if step.reason:
        yield from _fitted(f"{'':>{INDENT}}{depth}", step.reason, width)


def _place_lines(places: Sequence[Place], width: int | None) -> Iterator[str]:
    longest = max((len(one.name) for one in places), default=0)
    for one in places[:SHOWN]:
        yield from _fitted(f"  {one.name:<{longest}}  ", f"{one.state}, since {_time(one.since)}", width)
    if len(places) > SHOWN:
        yield f"  and {len(places) - SHOWN:,} more places: `--json` has them"
    if not places:
        yield "  unknown: no event says more"


def _fitted(head: str, text: str, width: int | None) -> Iterator[str]:
    """Yield a text after what precedes it, or below it where it would be too narrow; ids are not broken."""
    if width is None or len(head) + len(text) <= width:
        yield head + text
        return
    if width - len(head) >= LEAST:
        first, others = head, " " * len(head)
    else:
        first = others = " " * NARROW
        if head.strip():
            yield head.rstrip()
    yield from wrap(
        text, width, initial_indent=first, subsequent_indent=others, break_long_words=False, break_on_hyphens=False
    )


def _after(milliseconds: int) -> str:
    if abs(milliseconds) < SECOND:
        return f"{milliseconds:+} ms" if milliseconds else "0 ms"
    if abs(milliseconds) < MINUTE:
        return f"{milliseconds / SECOND:+.1f} s"
    minutes, seconds = divmod(round(milliseconds / SECOND), 60)
    hours, minutes = divmod(minutes, 60)
    return f"+{hours}h {minutes}m" if hours else f"+{minutes}m {seconds}s"


def _time(moment: datetime) -> str:
    local = moment.astimezone()
    return f"{local:%H:%M:%S}.{local.microsecond // 1000:03}"
