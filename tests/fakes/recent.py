"""The clocks of a function instance that remembers what it has read."""

from dataclasses import dataclass

from signalbox.aws.live.recent import Moment


@dataclass
class TwoClocks:
    """A monotonic clock and the system's time, in seconds; only `advance` moves them."""

    monotonic: float = 100.0
    system: float = 1_000.0

    def now(self) -> Moment:
        """Return the current moment."""
        return Moment(self.monotonic, self.system)

    def advance(self, seconds: float) -> None:
        """Move both clocks."""
        self.monotonic += seconds
        self.system += seconds
