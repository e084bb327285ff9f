"""The sandboxed process that runs jq programs, without environment, files or Signalbox imports.

A request is a line with a JSON list: `["compile", program]`, or `["run", program]` with the document on the next line.
A response is one line with a JSON object. The process ends with its input.
"""

import json
import os
import resource
import sys
from functools import lru_cache
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from jq import Program

MEMORY_BYTES = 512 * 1024 * 1024


def main(library: str) -> None:
    """Serve requests with the jq package in the folder `library` until the input ends."""
    sys.path.append(library)
    _compiled("true")  # imports jq while files can still be read
    _give_up_means()
    serve(sys.stdin, sys.stdout)


def _give_up_means() -> None:
    os.environ.clear()
    # `import "name" as $x {search: "/"}` reads files; a process without file descriptors cannot.
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "linux":  # elsewhere the address space may exceed the limit from the start
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))


def serve(requests: TextIO, answers: TextIO) -> None:
    """Respond to each request until the input ends."""
    for line in requests:
        task, program = json.loads(line)
        document = next(requests) if task == "run" else None
        answers.write(json.dumps(_answer(program, document)) + "\n")
        answers.flush()


def _answer(program: str, document: str | None) -> dict[str, object]:
    try:
        compiled = _compiled(program)
    except ValueError as error:
        return {"invalid": _reason(str(error))}
    if document is None:
        return {}
    try:
        return {"outputs": compiled.input_text(document).all()}
    except ValueError as error:
        return {"failed": str(error)}


@lru_cache(maxsize=256)
def _compiled(program: str) -> "Program":
    import jq  # noqa: PLC0415 - found only after `main` has extended the path

    return jq.compile(program)


def _reason(text: str) -> str:
    """Return jq's error messages in one line, without the quoted program under each."""
    complaints = [line.rstrip(":") for line in text.splitlines() if line.startswith("jq: error")]
    return "; ".join(line.removeprefix("jq: error: ") for line in complaints) or text


if __name__ == "__main__":
    main(sys.argv[1])
