"""The bridge: publishes rows in order, in windows that a checkpoint announces."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from signalbox.live.bridge.checkpoints import Checkpoint, Intent, StoredCheckpoint, published_part
from signalbox.live.bridge.ports import BridgeRealm, LogTable
from signalbox.live.bridge.publications import RowPublication, row_publications
from signalbox.live.bridge.row_order import RowOrder
from signalbox.live.bridge.topics import PERMISSION_GRAPH

READ_IDS = 1_000
# A checkpoint names the topics of its window, and is read with the log of each.
WINDOW_PUBLICATIONS = 60
# A window has at most these rows, with three publications each.
WINDOW_ROWS = 20


@dataclass(slots=True)
class BridgeStatistics:
    """The counters of a bridge since its start."""

    published: int = 0
    cut: int = 0
    resumed: int = 0
    already_published: int = 0
    permission_changes: int = 0


@dataclass(slots=True)
class ArvadosBridge:
    """One connection's work: `resume` first, then `step` again and again, and `settle` when there is nothing to do.

    After an error in any of them the bridge must be resumed, since the outcome of a publication is unknown. `start` is
    the position without a checkpoint, or None for the newest row. `patience` limits the wait for a transaction.
    """

    table: LogTable
    realm: BridgeRealm
    now: Callable[[], datetime]
    run: str
    patience: timedelta
    start: int | None = None
    ignores_checkpoint: bool = False
    is_ending: Callable[[], bool] = lambda: False
    statistics: BridgeStatistics = field(default_factory=BridgeStatistics)
    _order: RowOrder = field(init=False)
    _is_settled: bool = False
    _published: frozenset[Intent] = frozenset()

    def __post_init__(self) -> None:
        self._order = RowOrder(0, patience=self.patience)

    @property
    def position(self) -> int:
        """Return the id up to which every row is published, rolled back or late."""
        return self._order.position

    @property
    def late_ids(self) -> int:
        """Return the number of ids that were passed over and may still get a row."""
        return sum(one.last - one.first + 1 for one in self._order.late)

    @property
    def is_waiting(self) -> bool:
        """Return whether transactions delay rows."""
        return self._order.is_waiting

    def resume(self) -> None:
        """Continue after the last published row, and save that as a checkpoint."""
        stored = None if self.ignores_checkpoint else self.realm.checkpoint()
        self.ignores_checkpoint = False
        if stored is None:
            position = self.table.newest_id() if self.start is None else self.start
            self._order = RowOrder(position, patience=self.patience)
        else:
            self._continue_from(stored)
        self._save(())
        self.statistics.resumed += 1

    def _continue_from(self, stored: StoredCheckpoint) -> None:
        checkpoint = stored.checkpoint
        logged = self.realm.logged(checkpoint.window, since=stored.at) if checkpoint.window else ()
        published = published_part(checkpoint.window, logged)
        rest = {one.id for one in checkpoint.window[len(published) :]}
        # Of the last row, some publications may be missing.
        whole = list(dict.fromkeys(one.id for one in published if one.id not in rest))
        self._published = frozenset([*checkpoint.published, *(one for one in published if one.id in rest)])
        position = max([checkpoint.position, *whole])
        self._order = RowOrder(position, checkpoint.late, patience=self.patience)
        for number in whole:
            self._complete(number)
        self.statistics.already_published += len(whole)

    def step(self) -> bool:
        """Publish the next rows, at most a window; return whether there were any."""
        ids = self._ready()[:WINDOW_ROWS]
        found = {row.id: row_publications(row) for row in self.table.rows(ids)} if ids else {}
        window = list(self._window(ids, found))
        if any(publications for _, publications in window):
            self._save([one for _, publications in window for one in publications])
        for number, publications in window:
            if self.is_ending():
                return True
            for one in publications:
                self._publish(one)
            self.statistics.published += bool(publications)
            self._complete(number)
        return bool(ids)

    def _window(
        self, ids: Sequence[int], found: Mapping[int, Sequence[RowPublication]]
    ) -> Iterator[tuple[int, Sequence[RowPublication]]]:
        """Yield the publications of each row that are left; none for a row that was deleted after its id was read."""
        count = 0
        for number in ids:
            publications = found.get(number, ())
            count += len(publications)
            if count > WINDOW_PUBLICATIONS and count > len(publications):
                return
            yield number, [one for one in publications if Intent(one.id, one.topic) not in self._published]

    def settle(self) -> None:
        """Save the position, so that the next run need not look for rows in the realm's log."""
        if not self._is_settled:
            self._save(())

    def _ready(self) -> Sequence[int]:
        order = self._order
        visible_late = self.table.ids_within(order.late) if order.late else ()
        visible = self.table.ids_after(order.position, limit=READ_IDS)
        ids = order.ready(visible, visible_late, self.now())
        if order.is_waiting:
            order.note_writers(self.table.writers())
        return ids

    def _publish(self, publication: RowPublication) -> None:
        self.realm.publish(publication)
        self.statistics.cut += publication.is_cut
        self.statistics.permission_changes += publication.topic == PERMISSION_GRAPH

    def _complete(self, number: int) -> None:
        self._order.published(number)
        self._published = frozenset(one for one in self._published if one.id != number)

    def _save(self, window: Sequence[RowPublication]) -> None:
        intents = tuple(Intent(one.id, one.topic) for one in window)
        self._is_settled = not intents
        published = tuple(sorted(self._published, key=lambda one: (one.id, one.topic)))
        self.realm.save(Checkpoint(self._order.position, self._order.late, intents, self.run, published))
