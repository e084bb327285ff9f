"""The sandbox: a process that forks workers, in which users' patterns and programs run; it imports nothing of ours.

The parent imports the engines once. For each byte with a connection on its control socket it ends the worker that runs,
forks another one for the connection, and answers with the wait status of the ended one.

A worker gets two lines for each request: `[task, source, CPU seconds]`, and the text or document. It answers with one
line, a JSON object. It has no environment and no files, and dies where a request exceeds its CPU time or memory.
"""

import json
import os
import re
import resource
import signal
import socket
import sys
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jaq import Filter
    from jsonschema_rs import Draft202012Validator

MEMORY_BYTES = 64 * 1024 * 1024
# A worker is replaced when what it keeps, such as compiled patterns, exceeds this: the rest is for the next request.
KEPT_BYTES = 8 * 1024 * 1024
TEXT_BYTES = 256 * 1024
MATCHING, BACKTRACKS = "matches", "backtracks too often"


def main(control: int) -> None:
    """Fork a worker for each connection that arrives at the socket `control`, until it is closed."""
    for task, source in (("search", ["(?=a)"]), ("find", "a"), ("select", "."), ("decide", "true")):
        TASKS[task](source, '"a"')  # imports all that the engines need while files can still be read
    with socket.socket(fileno=control) as requests:
        worker = 0
        while True:
            start, connections, _, _ = socket.recv_fds(requests, 1, 1)
            status = _end(worker)
            if not start:
                return
            worker = os.fork()
            if worker == 0:
                _be_worker(requests, connections[0])
            os.close(connections[0])
            requests.sendall(status.to_bytes(4, "big"))


def _end(worker: int) -> int:
    """End a worker; return its wait status, 0 if there is none."""
    if worker == 0:
        return 0
    os.kill(worker, signal.SIGKILL)
    return os.waitpid(worker, 0)[1]


def _be_worker(requests: socket.socket, connection: int) -> None:
    try:
        requests.close()
        # Only the end of the process closes it: its client then asks the parent how the worker ended.
        serve(socket.socket(fileno=connection), _give_up_means())
    except BaseException:  # noqa: BLE001 - the engine may raise anything, and the parent's code must not go on here
        os._exit(1)
    os._exit(0)


def _give_up_means() -> Callable[[], int]:
    """Return a function that returns the bytes of memory in addition to those at the start."""
    os.environ.clear()
    os.environ["LANG"] = "C"  # programs see the environment; mirrord's is never empty
    statm = os.open("/proc/self/statm", os.O_RDONLY) if sys.platform == "linux" else None
    base = _size(statm)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if base:  # elsewhere the address space may exceed the limit from the start
        resource.setrlimit(resource.RLIMIT_AS, (base + MEMORY_BYTES, base + MEMORY_BYTES))
    return lambda: _size(statm) - base


def _size(statm: int | None) -> int:
    return 0 if statm is None else int(os.pread(statm, 64, 0).split()[0]) * resource.getpagesize()


def serve(connection: socket.socket, kept: Callable[[], int]) -> None:
    """Respond to each request until the connection ends."""
    with connection.makefile("rb") as requests:
        for line in requests:
            document = next(requests).decode()
            started = _cpu_seconds()
            task, source, seconds = json.loads(line)
            # Beyond this CPU time the signal ends the process: no engine can catch or delay it.
            signal.setitimer(signal.ITIMER_PROF, seconds)
            answer = TASKS[task](source, document)
            signal.setitimer(signal.ITIMER_PROF, 0)
            answer |= {"seconds": _cpu_seconds() - started, "is_full": kept() > KEPT_BYTES}
            connection.sendall(json.dumps(answer).encode() + b"\n")


def _cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _compile_pattern(source: list[str], _document: str) -> dict[str, object]:
    try:
        _pattern(*source)
    except ValueError:
        return {"invalid": "not a pattern of Rust's fancy-regex, or too large"}
    return {}


def _search(source: list[str], document: str) -> dict[str, object]:
    from jsonschema_rs import ValidationError, ValidationErrorKind  # noqa: PLC0415 - loaded by `main`

    try:
        _pattern(*source).validate(json.loads(document))
    except ValidationError as error:
        if isinstance(error.kind, ValidationErrorKind.BacktrackLimitExceeded):
            return {"broken": BACKTRACKS}
        return {MATCHING: False}
    return {MATCHING: True}


def _find(source: str, document: str) -> dict[str, object]:
    """Return the span of the group `value`, else of the first group, else of the whole match."""
    try:
        found = re.search(source, json.loads(document))
    except re.error as error:
        return {"invalid": str(error)}
    if found is None:
        return {"span": None}
    return {"span": found.span("value" if "value" in found.re.groupindex else min(found.re.groups, 1))}


def _compile_program(source: str, _document: str) -> dict[str, object]:
    from jaq import CompileError  # noqa: PLC0415 - loaded by `main`

    try:
        _program(source)
    except CompileError as error:
        return {"invalid": str(error).partition("\n")[0].removeprefix("Error: ")}
    return {}


def _decide(source: str, document: str) -> dict[str, object]:
    """Return the first output of a program; None if there is none."""
    from jaq import JaqError  # noqa: PLC0415 - loaded by `main`

    try:
        return {"decision": _program(source).first(document, text=True)}
    except IndexError:
        return {"decision": None}
    except JaqError as error:
        return {"failed": str(error)}


def _select(source: str, document: str) -> dict[str, object]:
    """Return the outputs of a program, which are texts."""
    from jaq import JaqError  # noqa: PLC0415 - loaded by `main`

    try:
        texts = _program(source).run(document, text=True)
    except JaqError as error:
        return {"failed": str(error)}
    return {"texts": texts} if sum(map(len, texts)) < TEXT_BYTES else {"failed": "the texts are too long"}


TASKS: dict[str, Callable[[Any, str], dict[str, object]]] = {
    "compile pattern": _compile_pattern,
    "search": _search,
    "find": _find,
    "compile program": _compile_program,
    "decide": _decide,
    "select": _select,
}


@lru_cache(maxsize=64)
def _pattern(*spellings: str) -> "Draft202012Validator":
    """Return the first spelling of a pattern that the engine's first parser accepts. Raises `ValueError`."""
    *others, last = spellings
    for text in others:
        if compiled := _compiled(text):
            return compiled
        if _compiled(f"(?:{text}){{0}}"):
            raise ValueError("the pattern is too large")
    if compiled := _compiled(last):
        return compiled
    raise ValueError("the pattern is invalid")


def _compiled(pattern: str) -> "Draft202012Validator | None":
    from jsonschema_rs import Draft202012Validator  # noqa: PLC0415 - found only after `main` has extended the path

    try:
        # Behind a reference, a pattern is compiled and not first checked by the rules of JSON Schema's own dialect.
        return Draft202012Validator({"$ref": "#/x", "x": {"pattern": pattern}})
    except ValueError:
        return None


@lru_cache(maxsize=64)
def _program(program: str) -> "Filter":
    import jaq  # noqa: PLC0415 - found only after `main` has extended the path

    return jaq.compile(program)


if __name__ == "__main__":
    main(int(sys.argv[1]))
