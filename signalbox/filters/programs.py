"""jq programs of users, run in a sandboxed process with limits on time and memory."""

import contextlib
import json
import os
import selectors
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from importlib.util import find_spec
from pathlib import Path
from typing import IO, cast

from signalbox.errors import UnavailableError
from signalbox.filters import jq_process
from signalbox.splitting.forwarding.filters import FilterTooSlow, InvalidExpression, ProgramFailed

TIME_LIMIT = timedelta(seconds=1)
START_LIMIT = timedelta(seconds=30)  # Python and jq on a cold, busy machine; not counted against any program
MAXIMUM_PROGRAM_CHARACTERS = 10_000
MAXIMUM_ANSWER_BYTES = 16 * 1024 * 1024
READ_BYTES = 65_536


class ProgramsUnavailable(UnavailableError):
    """Raised when the process that runs jq programs does not start."""


@dataclass(slots=True)
class ProgramRunner:
    """Compiles and runs jq programs in a separate process, which is replaced when a program breaks it.

    `time_limit` is for one run of one program. Use a runner from one thread only.
    """

    time_limit: timedelta = TIME_LIMIT
    _process: "subprocess.Popen[bytes] | None" = field(default=None, init=False, repr=False)

    def compile(self, text: str) -> "JqProgram":
        """Return a compiled program. Raises `InvalidExpression` with jq's error message."""
        if len(text) > MAXIMUM_PROGRAM_CHARACTERS:
            most = MAXIMUM_PROGRAM_CHARACTERS
            raise InvalidExpression(f"{len(text)} characters are too many; at most {most} are allowed")
        try:
            self.answer(json.dumps(["compile", text]), program=text)
        except FilterTooSlow as error:
            raise InvalidExpression(str(error)) from error
        return JqProgram(text, self)

    def answer(self, *lines: str, program: str) -> Mapping[str, object]:
        """Return the process's response to a request. Raises `InvalidExpression` and `FilterTooSlow`."""
        line = self._exchange("".join(f"{line}\n" for line in lines).encode())
        if line is None:
            self.close()
            seconds = self.time_limit.total_seconds()
            raise FilterTooSlow(f"jq program {program!r} took longer than {seconds:g} s, or too much memory")
        answer: Mapping[str, object] = json.loads(line)
        if "invalid" in answer:
            raise InvalidExpression(f"{program!r}: {answer['invalid']}")
        return answer

    def close(self) -> None:
        """End the process if it runs."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def _exchange(self, request: bytes) -> bytes | None:
        if self._process is None:
            self._process = _started()
        requests, answers = _pipes(self._process)
        try:
            requests.write(request)
            requests.flush()
        except BrokenPipeError:  # the process has ended, for example because the system ran out of memory
            return None
        return _line(answers, self.time_limit)


@dataclass(frozen=True, slots=True)
class JqProgram:
    """A compiled jq program."""

    text: str
    runner: ProgramRunner = field(repr=False, compare=False)

    def outputs(self, document: object) -> Sequence[object]:
        """Return the program's outputs for a document. Raises `ProgramFailed` and `FilterTooSlow`."""
        answer = self.runner.answer(json.dumps(["run", self.text]), json.dumps(document), program=self.text)
        outputs = answer.get("outputs")
        if not isinstance(outputs, list):
            raise ProgramFailed(str(answer["failed"]))
        return outputs


def _started() -> "subprocess.Popen[bytes]":
    """Start the process and return it when it serves."""
    command = [sys.executable, "-I", "-B", jq_process.__file__, str(_folder_of_jq())]
    # Lambda's Python finds its own libraries there; the process clears its environment before it serves.
    environment = {name: value for name, value in os.environ.items() if name == "LD_LIBRARY_PATH"}
    process = subprocess.Popen(  # noqa: S603 - our own program, and no shell
        command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    requests, answers = _pipes(process)
    requests.write(b'["compile", "true"]\n')
    with contextlib.suppress(BrokenPipeError):
        requests.flush()
    if _line(answers, START_LIMIT) is None:
        process.kill()
        process.communicate()
        raise ProgramsUnavailable(f"the process that runs jq programs did not start ({process.returncode})")
    return process


def _folder_of_jq() -> Path:
    found = find_spec("jq")
    if found is None or found.origin is None:
        raise ProgramsUnavailable("the package `jq` is not installed, so jq filters cannot run")
    return Path(found.origin).parent


def _pipes(process: "subprocess.Popen[bytes]") -> tuple[IO[bytes], IO[bytes]]:
    # Both exist, because both were requested.
    return cast("IO[bytes]", process.stdin), cast("IO[bytes]", process.stdout)


def _line(answers: IO[bytes], limit: timedelta) -> bytes | None:
    """Return the next line; None if it is late, too long, or the process has closed its output."""
    deadline = time.monotonic() + limit.total_seconds()
    line = b""
    with selectors.DefaultSelector() as selector:
        selector.register(answers, selectors.EVENT_READ)
        while not line.endswith(b"\n"):
            if len(line) > MAXIMUM_ANSWER_BYTES or not selector.select(max(0.0, deadline - time.monotonic())):
                return None
            part = os.read(answers.fileno(), READ_BYTES)
            if not part:
                return None
            line += part
    return line
