"""Settings of a function and of its event source mappings, from the deployed ones, a template and options."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from signalbox.clients.splitting.handler.event_patterns import FilterCriteria
from signalbox.errors import RejectedError

REPORT_BATCH_ITEM_FAILURES = "ReportBatchItemFailures"
# Lambda's limits: https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html
LARGEST_BATCH, LARGEST_FIFO_BATCH = 10_000, 10
LARGEST_BATCH_WITHOUT_WINDOW = 10
LONGEST_WINDOW_SECONDS = 300
LONGEST_TIMEOUT_SECONDS = 900


class InvalidHandlerSettings(RejectedError):
    """Raised when Lambda would refuse the settings of a function or an event source mapping."""


@dataclass(frozen=True, slots=True)
class MappingSettings:
    """The batch settings of an event source mapping; the defaults are Lambda's."""

    batch_size: int = 10
    window: timedelta = timedelta()
    reports_failures: bool = False
    filters: FilterCriteria = field(default_factory=FilterCriteria)

    @classmethod
    def of(cls, mapping: Mapping[str, Any]) -> "MappingSettings":
        """Return the settings of a mapping in the form of Lambda's API, which templates use too."""
        return cls(
            batch_size=int(mapping.get("BatchSize", 10)),
            window=timedelta(seconds=int(mapping.get("MaximumBatchingWindowInSeconds", 0))),
            reports_failures=REPORT_BATCH_ITEM_FAILURES in (mapping.get("FunctionResponseTypes") or ()),
            filters=FilterCriteria.parse(mapping.get("FilterCriteria") or {}),
        )

    def check(self, *, is_fifo: bool) -> None:
        """Raise `InvalidHandlerSettings` for settings that Lambda refuses for such a queue."""
        seconds = self.window.total_seconds()
        largest = LARGEST_FIFO_BATCH if is_fifo else LARGEST_BATCH
        if not 1 <= self.batch_size <= largest:
            raise InvalidHandlerSettings(f"batch size {self.batch_size} is not between 1 and {largest}")
        if not 0 <= seconds <= LONGEST_WINDOW_SECONDS:
            raise InvalidHandlerSettings(f"window of {seconds:g} s is not between 0 and {LONGEST_WINDOW_SECONDS} s")
        if is_fifo and seconds:
            raise InvalidHandlerSettings("a FIFO queue has no window")
        if self.batch_size > LARGEST_BATCH_WITHOUT_WINDOW and not seconds:
            raise InvalidHandlerSettings(f"a batch size of {self.batch_size} needs a window of at least 1 s")


@dataclass(frozen=True, slots=True)
class FunctionSettings:
    """A function as its handler sees it; the defaults are Lambda's."""

    name: str
    arn: str
    version: str = "$LATEST"
    timeout: timedelta = timedelta(seconds=3)
    memory_mb: int = 128
    log_group: str = ""
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)

    def check(self) -> None:
        """Raise `InvalidHandlerSettings` for a time-out that Lambda refuses."""
        seconds = self.timeout.total_seconds()
        if not 1 <= seconds <= LONGEST_TIMEOUT_SECONDS:
            raise InvalidHandlerSettings(f"timeout of {seconds:g} s is not between 1 and {LONGEST_TIMEOUT_SECONDS} s")


@dataclass(frozen=True, slots=True)
class Overrides:
    """Options of a user; None keeps the setting."""

    batch_size: int | None = None
    window_seconds: int | None = None
    timeout_seconds: int | None = None
    reports_failures: bool | None = None

    def of_mapping(self, settings: MappingSettings) -> MappingSettings:
        """Return the settings with the options for mappings applied."""
        if self.batch_size is not None:
            settings = replace(settings, batch_size=self.batch_size)
        if self.window_seconds is not None:
            settings = replace(settings, window=timedelta(seconds=self.window_seconds))
        if self.reports_failures is not None:
            settings = replace(settings, reports_failures=self.reports_failures)
        return settings

    def of_function(self, settings: FunctionSettings) -> FunctionSettings:
        """Return the settings with the time-out applied."""
        if self.timeout_seconds is None:
            return settings
        return replace(settings, timeout=timedelta(seconds=self.timeout_seconds))
