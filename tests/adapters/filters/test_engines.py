"""The sandbox: limits of time and memory, and workers that are replaced."""

import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from signalbox.filters.engines import PATIENCE, Engines, EnginesUnavailable
from signalbox.filters.patterns import compile_pattern
from signalbox.filters.programs import compile_program
from signalbox.splitting.model.filters import FilterStopped, FilterUse, InvalidExpression

ENDLESS = "last(range(1e12))"


@pytest.fixture
def engines() -> Iterator[Engines]:
    engines = Engines()
    yield engines
    engines.close()


def sandbox_of(engines: Engines) -> int:
    assert engines._sandbox is not None
    return engines._sandbox.pid


def worker_of(engines: Engines) -> int:
    pid = sandbox_of(engines)
    return int(Path(f"/proc/{pid}/task/{pid}/children").read_text())


def test_what_takes_too_long_is_stopped_and_the_next_request_is_answered(engines):
    program = compile_program(ENDLESS, engines)
    engines.use = FilterUse(limit_seconds=0.2)
    started = time.monotonic()

    with pytest.raises(FilterStopped, match=r"jq program 'last\(range\(1e12\)\)' took longer than 0\.2 s"):
        program.decision({})

    assert time.monotonic() - started < 0.2 * PATIENCE + 5
    engines.use = FilterUse()
    assert compile_program(".a", engines).decision({"a": True}) is True


def test_requests_of_one_owner_share_the_time(engines):
    program = compile_program("reduce range(300000) as $i (0; . + $i) < 0", engines)
    engines.use = FilterUse(limit_seconds=0.3)

    with suppress(FilterStopped):
        while True:
            program.decision({})

    with pytest.raises(FilterStopped, match=r"took longer than 0\.3 s, together with the evaluations before it"):
        program.decision({})
    assert engines.use.elapsed_seconds < 0.3 * PATIENCE + 5


def test_short_requests_count_at_least_a_third_of_the_time_that_they_take(engines):
    program = compile_program("true", engines)
    engines.use = FilterUse()

    for _ in range(100):
        program.decision({})

    assert engines.use.seconds * PATIENCE >= engines.use.elapsed_seconds * 0.999


def test_what_has_hardly_any_time_left_is_stopped(engines):
    program = compile_program("true", engines)
    engines.use = FilterUse(limit_seconds=1e-9)

    with suppress(FilterStopped):  # a fast answer arrives in spite of that
        program.decision({})
    with pytest.raises(FilterStopped, match="took longer than"):
        program.decision({})


@pytest.mark.parametrize("program", ["[limit(1e9; repeat(1))] | length < 0", "def f: f + f; f"], ids=["list", "stack"])
def test_what_uses_too_much_memory_is_stopped(engines, program):
    compiled = compile_program(program, engines)
    engines.use = FilterUse(limit_seconds=30)

    with pytest.raises(FilterStopped, match=r"used more than 64 MB or broke its engine|took longer"):
        compiled.decision({})

    assert compile_program(".a", engines).decision({"a": True}) is True


def test_a_worker_that_keeps_much_memory_is_replaced_and_no_request_fails(engines):
    patterns = [rf"(?=a)\w{{60}}{number}" for number in range(30)]
    workers = set()

    for text in patterns:
        assert not compile_pattern(text, case_sensitive=False, engines=engines).matches("a")
        workers.add(worker_of(engines))

    assert len(workers) > 1


def test_a_dead_worker_ends_the_request_and_is_replaced(engines):
    program = compile_program(".a", engines)
    os.kill(worker_of(engines), signal.SIGSEGV)

    with pytest.raises(FilterStopped, match="used more than 64 MB or broke its engine"):
        program.decision({"a": "x" * 1_000_000})

    assert program.decision({"a": True}) is True


def test_a_dead_sandbox_is_started_again(engines):
    program = compile_program(".a", engines)
    for process in (worker_of(engines), sandbox_of(engines)):
        os.kill(process, signal.SIGKILL)

    with pytest.raises(FilterStopped):
        program.decision({"a": "x" * 1_000_000})

    assert program.decision({"a": True}) is True


def test_the_sandbox_ends_with_its_client():
    engines = Engines()
    compile_program(".a", engines)
    sandbox, worker = engines._sandbox, worker_of(engines)
    assert sandbox is not None
    assert engines._control is not None

    engines._control.close()

    assert sandbox.wait(10) == 0
    assert not Path(f"/proc/{worker}").exists()


def test_what_takes_too_long_to_compile_is_refused(engines):
    engines.use = FilterUse(limit_seconds=0)

    with pytest.raises(InvalidExpression, match=r"took longer than 0 s, .* to compile"):
        compile_program("true", engines)


def test_a_worker_that_does_not_answer_is_given_up(engines):
    program = compile_program("true", engines)
    engines.use = FilterUse(limit_seconds=0.1)
    os.kill(worker_of(engines), signal.SIGSTOP)

    with pytest.raises(FilterStopped, match="took longer"):
        program.decision({})


def test_the_sandbox_does_not_inherit_secrets(engines, monkeypatch):
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hidden")
    monkeypatch.setenv("LD_LIBRARY_PATH", "/lib")

    compile_program("true", engines)

    assert b"hidden" not in Path(f"/proc/{sandbox_of(engines)}/environ").read_bytes()


def test_missing_packages_are_named(monkeypatch):
    monkeypatch.setattr("signalbox.filters.engines.find_spec", lambda _name: None)

    with pytest.raises(EnginesUnavailable, match="the modules jsonschema_rs, jaq are not installed"):
        compile_program("true", Engines())


def test_a_sandbox_that_does_not_start_is_unavailable(monkeypatch):
    monkeypatch.setattr(sys, "executable", "/bin/false")

    with pytest.raises(EnginesUnavailable, match="did not start"):
        compile_program("true", Engines())
