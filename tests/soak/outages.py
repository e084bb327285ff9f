"""Outages: services of a stage with fault injection that are away, one after the other."""

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from signalbox.local.stage_folder import StageFolder
from tests.fault_injection.outages import AWAY
from tests.soak.accounts import Outage

LEAD_SECONDS, AWAY_SECONDS, BACK_SECONDS = 20.0, 180.0, 120.0


@dataclass(slots=True)
class Outages:
    """The turns of services: each is away for `away_seconds`, and all answer before and after that."""

    folder: StageFolder
    services: Sequence[str] = tuple(AWAY)
    away_seconds: float = AWAY_SECONDS
    back_seconds: float = BACK_SECONDS
    lead_seconds: float = LEAD_SECONDS
    past: list[Outage] = field(default_factory=list)
    _away: str | None = None
    _since: float = 0.0

    @property
    def seconds(self) -> float:
        """Return the time that all turns take."""
        return len(self.services) * self._turn

    @property
    def _turn(self) -> float:
        return self.lead_seconds + self.away_seconds + self.back_seconds

    def update(self, seconds: float) -> None:
        """Let the service be away whose turn it is, `seconds` after the begin."""
        turn, within = divmod(seconds, self._turn)
        is_away = int(turn) < len(self.services) and 0 <= within - self.lead_seconds < self.away_seconds
        self._let_be_away(self.services[int(turn)] if is_away else None)

    def end(self) -> None:
        """Let all services answer."""
        self._let_be_away(None)

    def _let_be_away(self, service: str | None) -> None:
        if service == self._away:
            return
        now = time.time()
        if self._away is not None:
            self.past.append(Outage(self._away, self._since, now))
        new = self.folder.outages.with_suffix(".new")
        new.write_text(json.dumps([service] if service else []))
        new.replace(self.folder.outages)
        self._away, self._since = service, now
