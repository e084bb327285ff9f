"""The rows of a row group, by column; a map is a dictionary."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from signalbox.history.parquet.metadata import Leaf, ParquetMetadata, RowGroup
from signalbox.history.parquet.pages import INT96, Column, column, pages

Read = Callable[[int, int], bytes]
"""Returns the bytes of a file from a position to before another one."""
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def columns(metadata: ParquetMetadata, group: RowGroup, read: Read) -> Mapping[str, Sequence[Any]]:
    """Return the values of a row group by the names of its columns, one for each row; null is None.

    Raises `UnreadableParquet`.
    """
    found: dict[str, Sequence[Any]] = {}
    entries: dict[str, list[Sequence[list[Any] | None]]] = {}
    for leaf in metadata.leaves:
        chunk = group.chunks[leaf.path]
        decoded = column(read(chunk.start, chunk.end), chunk, leaf)
        if leaf.repetition_level:
            entries.setdefault(leaf.path[0], []).append(list(lists(leaf, decoded)))
        else:
            found[leaf.path[0]] = _values(leaf, decoded)
    for name, (keys, values) in entries.items():
        found[name] = [
            None if of_row is None else dict(zip(of_row, own or (), strict=True))
            for of_row, own in zip(keys, values, strict=True)
        ]
    return found


def names_text(
    metadata: ParquetMetadata, group: RowGroup, read: Read, *, names: Collection[str], texts: Collection[bytes]
) -> bool:
    """Return whether columns may contain one of the texts, by a search of their decompressed pages.

    It is false for most row groups, whose values then need not be decoded. Raises `UnreadableParquet`.
    """
    chunks = (group.chunks[leaf.path] for leaf in metadata.leaves if leaf.path[0] in names)
    found = (page for chunk in chunks for page in pages(read(chunk.start, chunk.end), chunk.codec))
    return any(text in page.body for page in found for text in texts)


def _values(leaf: Leaf, decoded: Column) -> list[Any]:
    values = _converted(leaf, decoded.values)
    return [next(values) if level == leaf.definition_level else None for level in decoded.definitions]


def lists(leaf: Leaf, decoded: Column) -> Iterator[list[Any] | None]:
    """Yield the keys or the values of each row's map; None for a null map."""
    values = _converted(leaf, decoded.values)
    entries: list[Any] | None = None
    for number, (repetition, definition) in enumerate(zip(decoded.repetitions, decoded.definitions, strict=True)):
        if repetition == 0:
            if number:
                yield entries
            # One level below an entry the map is empty, further below it is null.
            entries = [] if definition >= leaf.entry_level - 1 else None
        if definition >= leaf.entry_level and entries is not None:
            entries.append(next(values) if definition == leaf.definition_level else None)
    if decoded.definitions:
        yield entries


def _converted(leaf: Leaf, values: Sequence[Any]) -> Iterator[Any]:
    if leaf.unit is None and leaf.kind != INT96:
        return iter(values)
    units, microseconds = (1, 1) if leaf.unit is None else leaf.unit.value
    return (EPOCH + timedelta(microseconds=value * microseconds // units) for value in values)
