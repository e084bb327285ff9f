"""Apache Velocity, which renders mapping templates with the variables that API Gateway documents."""

import subprocess
from base64 import b64decode, b64encode
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tests.java.servers import PINS, class_path, java

PROGRAM = "MappingTemplate"


@dataclass(frozen=True, slots=True)
class Frame:
    """A WebSocket frame as a mapping template sees it."""

    connection: str
    request: str
    text: str


def rendered(template: str, frames: Iterable[Frame], *, folder: Path) -> list[str]:
    """Return the rendered template for each frame; compiled Java is written into the folder."""
    archives = class_path("velocity", size="5 MB")
    _run("org.eclipse.jdt.internal.compiler.batch.Main", archives, *_compile(archives, folder))
    lines = [_line(template), *(_line(frame.connection, frame.request, frame.text) for frame in frames)]
    output = _run(PROGRAM, f"{folder}:{archives}", lines=lines)
    return [b64decode(line).decode() for line in output.splitlines()]


def _compile(archives: str, folder: Path) -> list[str]:
    paths = [str(path) for path in Path(archives).parent.glob("*.jar")]
    return ["-17", "-nowarn", "-classpath", ":".join(paths), "-d", str(folder), str(PINS / f"{PROGRAM}.java")]


def _run(main: str, classes: str, *arguments: str, lines: Iterable[str] = ()) -> str:
    command = [*java(), "-cp", classes, main, *arguments]
    done = subprocess.run(command, input="\n".join(lines), capture_output=True, text=True, check=False)  # noqa: S603
    assert done.returncode == 0, done.stderr
    return done.stdout


def _line(*texts: str) -> str:
    return " ".join(b64encode(text.encode()).decode() for text in texts)
