"""The digest of everything from which a stage is synthesized: the same digest gives the same templates and assets."""

import hashlib
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

SOURCES = ("app.py", "cdk.json", "requirements.txt", "glue_jobs", "lambdas", "signalbox", "stacks", "web")
LEFT_OUT = ("__pycache__", ".pyc", ".egg-info")


def digest(app_folder: Path, context: Sequence[str]) -> str:
    """Return the digest of an app's files, its settings and the files that they name, and the version of Python."""
    found = hashlib.sha256(sys.version.encode())
    for setting in sorted(context):
        found.update(b"%d %b" % (len(setting), setting.encode()))
    for path in (*_files(app_folder), *_named_files(app_folder, context)):
        content = path.read_bytes()
        found.update(b"%d %b %d " % (len(str(path)), str(path).encode(), len(content)))
        found.update(content)
    return found.hexdigest()


def _files(app_folder: Path) -> Iterator[Path]:
    for name in SOURCES:
        path = app_folder / name
        yield from sorted(filter(_is_source, path.rglob("*"))) if path.is_dir() else filter(Path.is_file, [path])


def _is_source(path: Path) -> bool:
    return path.is_file() and not any(part.endswith(LEFT_OUT) for part in path.parts)


def _named_files(app_folder: Path, context: Sequence[str]) -> Iterable[Path]:
    values = (setting.partition("=")[2] for setting in context)
    paths = (app_folder / value for value in values if "/" in value or "." in value)
    return (path for path in paths if path.is_file())
