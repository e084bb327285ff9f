"""The format v02 of announcements: a line of text, and headers."""

import hashlib
import json
from base64 import b64decode, b64encode
from collections.abc import Mapping

from signalbox.sarracenia.formats.announcement import Announcement, FileOperation
from signalbox.sarracenia.formats.fields import Fields
from signalbox.sarracenia.formats.identity import ARBITRARY, CHECKSUMS, COMPUTE_ON_DOWNLOAD, RANDOM, Identity
from signalbox.sarracenia.formats.parts import parts_of, read_parts
from signalbox.sarracenia.formats.times import v02_time
from signalbox.sarracenia.formats.v03 import FIELDS as V03_FIELDS

CONTENT_TYPE = "text/plain"
METHODS = {"s": "sha512", "d": "md5", "0": RANDOM, "a": ARBITRARY, "z": COMPUTE_ON_DOWNLOAD}
LETTERS = {method: letter for letter, method in METHODS.items()}
NO_IDENTITY = "n"
# A link, and the operations on a path: (removed, directory).
LINK = "L"
OPERATIONS = {"R": (True, False), "r": (True, True), "m": (False, True)}
OPERATION_LETTERS = {flags: letter for letter, flags in OPERATIONS.items()}
ESCAPES = ((" ", "%20"), ("#", "%23"))
FIELDS = V03_FIELDS | {"sum", "link", "oldname", "topic"}


def body(announcement: Announcement) -> str:
    """Return the body of an announcement: its time, base URL and path."""
    # sr3 escapes the path only, and so misreads its own line when the base URL contains a space.
    return " ".join((v02_time(announcement.published_at), _escaped(announcement.base_url), _escaped(announcement.path)))


def _escaped(text: str) -> str:
    for character, escape in ESCAPES:
        text = text.replace(character, escape)
    return text


def headers(announcement: Announcement) -> dict[str, str]:
    """Return the headers of an announcement, without embedded content, which v02 does not have."""
    operation = announcement.operation or FileOperation()
    fields: dict[str, str | None] = {
        **{name: value if isinstance(value, str) else json.dumps(value) for name, value in announcement.others.items()},
        "source": announcement.source,
        "mode": announcement.mode,
        "mtime": v02_time(announcement.modified_at) if announcement.modified_at else None,
        "atime": v02_time(announcement.accessed_at) if announcement.accessed_at else None,
        "contentType": announcement.content_type,
        "retrievePath": announcement.retrieve_path,
        "parts": parts_of(announcement),
        # sr3 3.3.1 reads this header but does not write it, so its links lose their target.
        "link": operation.link,
        "oldname": operation.renamed_from,
        "sum": _sum(announcement, operation),
    }
    return {name: value for name, value in fields.items() if value is not None}


def _sum(announcement: Announcement, operation: FileOperation) -> str:
    name = announcement.path.rpartition("/")[2]
    if operation.link is not None:
        return f"{LINK},{hashlib.sha512(operation.link.encode(errors='surrogatepass')).hexdigest()}"
    # sr3 3.3.1 writes `R` for removed files and directories, but reads `r` too.
    if letter := OPERATION_LETTERS.get((operation.removed, operation.directory)):
        return f"{letter},{_sha512(name)}"
    identity = announcement.identity
    if identity is None or identity.method not in LETTERS:
        return f"{NO_IDENTITY},{hashlib.md5(_encoded(name), usedforsecurity=False).hexdigest()}"
    if identity.method in CHECKSUMS:
        return f"{LETTERS[identity.method]},{b64decode(identity.value).hex()}"
    value = LETTERS.get(identity.value, NO_IDENTITY) if identity.method == COMPUTE_ON_DOWNLOAD else identity.value
    return f"{LETTERS[identity.method]},{value}"


def _sha512(text: str) -> str:
    return hashlib.sha512(_encoded(text)).hexdigest()


def _encoded(text: str) -> bytes:
    return text.encode(errors="surrogatepass")  # JSON may hold half of a surrogate pair


def parse(line: str, headers: Mapping[str, object]) -> Announcement:
    """Parse an announcement from its body and headers. Raises `InvalidAnnouncement`."""
    time, base_url, path = (*line.split(" "), "", "", "")[:3]
    fields = Fields({**headers, "pubTime": time, "baseUrl": base_url, "relPath": path}, "", [])
    identity = _read_identity(fields)
    size_bytes, blocks = read_parts(fields, identity=identity.value if identity else "")
    announcement = Announcement(
        published_at=fields.required_moment("pubTime"),
        base_url=_unescaped(fields.required_text("baseUrl")),
        # sr3 leaves the path escaped, and so fetches and writes a different name.
        path=_unescaped(fields.required_text("relPath")),
        source=fields.text("source"),
        size_bytes=size_bytes,
        identity=identity,
        blocks=blocks,
        operation=_read_operation(fields),
        modified_at=fields.moment("mtime"),
        accessed_at=fields.moment("atime"),
        mode=fields.text("mode"),
        content_type=fields.text("contentType"),
        retrieve_path=fields.text("retrievePath"),
        others={name: value for name, value in headers.items() if name not in FIELDS},
    )
    fields.refuse()
    return announcement


def _unescaped(text: str) -> str:
    for character, escape in ESCAPES:
        text = text.replace(escape, character)
    return text


def _read_identity(fields: Fields) -> Identity | None:
    letter, _, value = (fields.text("sum") or NO_IDENTITY).partition(",")
    if letter in (NO_IDENTITY, LINK, *OPERATIONS):
        return None
    if letter not in METHODS:
        fields.problem("sum", f"unknown method {letter[:80]!r}; known are {', '.join(METHODS)}")
        return None
    if METHODS[letter] == COMPUTE_ON_DOWNLOAD:
        return Identity(COMPUTE_ON_DOWNLOAD, METHODS.get(value, value))
    return Identity(METHODS[letter], _digest(fields, value) if METHODS[letter] in CHECKSUMS else value)


def _digest(fields: Fields, value: str) -> str:
    try:
        return b64encode(bytes.fromhex(value)).decode()
    except ValueError:
        fields.problem("sum", f"{value[:80]!r} is not hexadecimal")
        return ""


def _read_operation(fields: Fields) -> FileOperation | None:
    letter = (fields.text("sum") or "").partition(",")[0]
    removed, directory = OPERATIONS.get(letter, (False, False))
    operation = FileOperation(
        link=fields.text("link") or ("" if letter == LINK else None),
        removed=removed,
        directory=directory,
        renamed_from=fields.text("oldname"),
    )
    return None if operation == FileOperation() else operation
