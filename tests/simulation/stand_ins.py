"""Stand-ins for what the simulation replaces in this process: clocks, chance, threads, clients, and instances' memory.

Each replaces a thing of Python, of a library or of the platform in the modules of the product that name it. Nothing of
the product's own rules, order of calls or wiring is replaced.
"""

import inspect
import logging
import random
import secrets
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent import futures
from datetime import UTC, datetime, tzinfo
from threading import Lock
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any

import boto3
from botocore.client import BaseClient
from urllib3 import PoolManager

from tests.simulation import clients, threads
from tests.simulation.cluster import SimulatedPool
from tests.simulation.kernel import Kernel

if TYPE_CHECKING:
    from tests.simulation.world import World

PRODUCT = ("signalbox.", "lambdas.")
# Functions that take a tenth of the time of splitting, by their modules.
KEPT = {
    "signalbox.filters.patterns": "_compiled",
    "signalbox.splitting.consumers.registry_file": "parse_registries",
    "signalbox.splitting.model.records": "read_record",
}
MOST_KEPT = 1000


class Present:
    """The run of which the stand-ins are a part."""

    world: "World"

    @property
    def kernel(self) -> Kernel:
        return self.world.kernel


PRESENT = Present()


class VirtualDatetime(datetime):
    """`datetime`, whose present is the kernel's."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]
        return datetime.fromtimestamp(PRESENT.kernel.now, tz)


def _sleep(seconds: float) -> None:
    PRESENT.kernel.sleep(seconds)


def _now() -> float:
    return PRESENT.kernel.now


def _random() -> float:
    return PRESENT.kernel.random()


def _between(low: float, high: float) -> float:
    return PRESENT.kernel.between(low, high)


def _bytes(size: int) -> bytes:
    return PRESENT.kernel.bytes(size)


def _number(below: int) -> int:
    return PRESENT.kernel.number(below)


def _choice(values: Any) -> Any:
    return values[PRESENT.kernel.number(len(values))]


VIRTUAL_TIME = SimpleNamespace(time=_now, monotonic=_now, sleep=_sleep, perf_counter=_now)
VIRTUAL_RANDOM = SimpleNamespace(random=_random, uniform=_between, choice=_choice)
VIRTUAL_SECRETS = SimpleNamespace(
    token_bytes=_bytes,
    token_hex=lambda size: _bytes(size).hex(),
    token_urlsafe=lambda size: _bytes(size).hex(),
    randbelow=_number,
    choice=_choice,
    compare_digest=secrets.compare_digest,
)
FUNCTIONS: Mapping[Any, Any] = {time.sleep: _sleep, time.monotonic: _now, time.time: _now, random.random: _random}


class Remembered:
    """A function with `functools.cache` of a module of functions: each instance remembers its own results."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    def __call__(self, *values: Any) -> Any:
        memory = self._memory()
        key = (self, values)
        if key not in memory:
            memory[key] = self.function(*values)
        return memory[key]

    def cache_info(self) -> SimpleNamespace:
        return SimpleNamespace(currsize=sum(1 for key in self._memory() if key[0] is self))

    def _memory(self) -> dict[Any, Any]:
        task = PRESENT.kernel.current
        assert task is not None, "only instances remember"
        memory: dict[Any, Any] = task.process.sandbox.remembered
        return memory


class Kept:
    """A function of the core, whose results of equal arguments are kept: neither changes. They are read often."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.results: dict[str, Any] = {}

    def __call__(self, *values: Any, **named: Any) -> Any:
        key = repr((values, named))
        if key not in self.results:
            if len(self.results) == MOST_KEPT:
                self.results.clear()
            self.results[key] = self.function(*values, **named)
        return self.results[key]


class CountedMetrics:
    """`EphemeralMetrics` without a log."""

    def __init__(self, **_: object) -> None:
        pass

    def add_metric(self, **_: object) -> None:
        pass

    def add_dimension(self, **_: object) -> None:
        pass

    def flush_metrics(self) -> None:
        pass


def install() -> None:
    """Replace everything, once in this process, after the modules of the functions are imported."""
    logging.disable(logging.CRITICAL)
    BaseClient._make_api_call = lambda client, operation, request: clients.make_api_call(  # type: ignore[method-assign]
        PRESENT.world.calls, client, operation, request
    )
    boto3.Session = lambda: SimpleNamespace(  # type: ignore[misc, assignment]
        client=clients.SharedSession().create_client, region_name="us-east-1"
    )
    kept = [getattr(sys.modules[module], name) for module, name in KEPT.items()]
    replaced: dict[int, Any] = {id(function): Kept(function) for function in kept}
    for module in _modules():
        _replace_globals(module, replaced)
        _replace_defaults(module)
    _replace_platform()


def _modules() -> Iterator[ModuleType]:
    for name, module in list(sys.modules.items()):
        if name.startswith(PRODUCT):
            yield module


def _replace_globals(module: ModuleType, replaced: dict[int, Any]) -> None:
    found = vars(module)
    stand_ins = {
        id(time): VIRTUAL_TIME,
        id(random): VIRTUAL_RANDOM,
        id(secrets): VIRTUAL_SECRETS,
        id(futures.ThreadPoolExecutor): lambda *_, **__: threads.Pool(PRESENT.kernel),
        id(futures.wait): threads.wait,
        id(Lock): lambda: threads.TaskLock(PRESENT.kernel),
        id(PoolManager): lambda *_, **__: SimulatedPool(PRESENT.world.calls),
        id(boto3): SimpleNamespace(client=clients.SharedSession().create_client),
    }
    if "datetime" in found and "datetime.now(" in inspect.getsource(module):
        stand_ins[id(datetime)] = VirtualDatetime
    for name, value in list(found.items()):
        if id(value) in stand_ins or id(value) in replaced:
            found[name] = stand_ins.get(id(value)) or replaced[id(value)]
        elif module.__name__.startswith("lambdas.") and hasattr(value, "cache_clear"):
            found[name] = replaced.setdefault(id(value), Remembered(value.__wrapped__))


def _replace_defaults(module: ModuleType) -> None:
    """Replace clocks that are default values of parameters."""
    for value in vars(module).values():
        made = getattr(value, "__init__", None) if inspect.isclass(value) else value
        defaults = getattr(made, "__defaults__", None)
        if defaults and getattr(made, "__module__", module.__name__).startswith(PRODUCT):
            made.__defaults__ = tuple(_stand_in(one) for one in defaults)  # type: ignore[union-attr]


def _stand_in(value: Any) -> Any:
    return FUNCTIONS[value] if inspect.isbuiltin(value) and value in FUNCTIONS else value


def _replace_platform() -> None:
    from lambdas.shared import instance, poison  # noqa: PLC0415 - after all modules are there
    from signalbox.aws.shared import settings, telemetry  # noqa: PLC0415

    settings.SystemClock.now = lambda _: datetime.fromtimestamp(PRESENT.kernel.now, UTC)  # type: ignore[method-assign]
    settings.SystemClock.sleep = lambda _, seconds: _sleep(seconds)  # type: ignore[method-assign]
    object.__setattr__(settings.BACKOFF, "draw", _random)
    telemetry.EphemeralMetrics = CountedMetrics  # type: ignore[misc, assignment]
    shared = clients.SharedSession()
    instance.settings = lambda: settings.Settings(_sandbox().function.environment)  # type: ignore[assignment]
    instance._session = lambda: shared  # type: ignore[assignment]
    instance.retry_throttled_keys = _remember_retries  # type: ignore[assignment]
    poison._harm = _harm_in_this_process


def _sandbox() -> Any:
    task = PRESENT.kernel.current
    assert task is not None, "only instances have settings"
    return task.process.sandbox


def _remember_retries(_events: object, backoff: Any) -> None:
    _sandbox().remembered["retries of throttled keys"] = backoff


def _harm_in_this_process(records: Any, read: Callable[[Any], object]) -> str | None:
    """Read suspects without a process of their own: whether content stops a process is not simulated."""
    from signalbox.errors import RejectedError  # noqa: PLC0415

    try:
        for record in records:
            try:
                read(record)
            except RejectedError:
                continue
    except Exception:  # noqa: BLE001 - as in the process that reads
        return "reading it fails by an error of the program, or needs too much memory"
    return None
