"""The format v03 of announcements: one JSON object, without headers."""

import json

from signalbox.sarracenia.formats.announcement import Announcement, FileOperation, InvalidAnnouncement
from signalbox.sarracenia.formats.blocks import Block, Blocks
from signalbox.sarracenia.formats.content import Content
from signalbox.sarracenia.formats.fields import Fields, whole_number
from signalbox.sarracenia.formats.identity import CHECKSUMS, Identity
from signalbox.sarracenia.formats.parts import read_parts
from signalbox.sarracenia.formats.times import v03_time

CONTENT_TYPE = "application/json"
FORMER_NAMES = {"retPath": "retrievePath", "integrity": "identity"}
# sr3 3.3.1 writes `mkdir` for a renamed directory that it converts from v02.
OPERATIONS = ("link", "remove", "directory", "mkdir", "rename")
FIELDS = {
    *("pubTime", "baseUrl", "relPath", "source", "size", "identity", "blocks", "content", "fileOp"),
    *("mtime", "atime", "mode", "contentType", "retrievePath", "parts"),
}


def body(announcement: Announcement) -> str:
    """Return the body of an announcement."""
    fields = {
        **announcement.others,
        "pubTime": v03_time(announcement.published_at),
        "relPath": announcement.path,
        "baseUrl": announcement.base_url,
        "source": announcement.source,
        "mode": announcement.mode,
        "size": announcement.size_bytes,
        "mtime": announcement.modified_at and v03_time(announcement.modified_at),
        "atime": announcement.accessed_at and v03_time(announcement.accessed_at),
        "contentType": announcement.content_type,
        "retrievePath": announcement.retrieve_path,
        "fileOp": announcement.operation and _operation(announcement.operation),
        "identity": announcement.identity
        and {"method": announcement.identity.method, "value": announcement.identity.value},
        "blocks": announcement.blocks and _blocks(announcement.blocks),
        "content": announcement.content
        and {"encoding": announcement.content.encoding, "value": announcement.content.value},
    }
    return json.dumps({name: value for name, value in fields.items() if value is not None})


def _operation(operation: FileOperation) -> dict[str, str]:
    document: dict[str, str | None] = {
        "link": operation.link,
        "remove": "" if operation.removed else None,
        "directory": "" if operation.directory else None,
        "rename": operation.renamed_from,
    }
    return {name: value for name, value in document.items() if value is not None}


def _blocks(blocks: Blocks) -> dict[str, object]:
    document = {
        "method": blocks.method,
        "size": blocks.size_bytes,
        "number": blocks.number,
        "manifest": {str(n): {"size": b.size_bytes, "identity": b.identity} for n, b in blocks.manifest.items()},
    }
    return document if len(blocks.manifest) == blocks.count else {**document, "count": blocks.count}


def parse(text: str) -> Announcement:
    """Parse an announcement from its body. Raises `InvalidAnnouncement`."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidAnnouncement(f"not JSON: {error}") from error
    if not isinstance(document, dict):
        raise InvalidAnnouncement("expected a JSON object")
    fields = Fields({FORMER_NAMES.get(str(name), str(name)): value for name, value in document.items()}, "", [])
    size_bytes, blocks = read_parts(fields)
    announcement = Announcement(
        published_at=fields.required_moment("pubTime"),
        base_url=fields.required_text("baseUrl"),
        path=fields.required_text("relPath"),
        source=fields.text("source"),
        size_bytes=fields.number("size") if size_bytes is None else size_bytes,
        identity=_read_identity(fields),
        blocks=_read_blocks(fields) or blocks,
        content=_read_content(fields),
        operation=_read_operation(fields),
        modified_at=fields.moment("mtime"),
        accessed_at=fields.moment("atime"),
        mode=fields.text("mode"),
        content_type=fields.text("contentType"),
        retrieve_path=fields.text("retrievePath"),
        others={name: value for name, value in fields.values.items() if name not in FIELDS},
    )
    fields.refuse()
    return announcement


def _read_identity(fields: Fields) -> Identity | None:
    identity = fields.inner("identity")
    if identity is None:
        return None
    method = identity.required_text("method")
    return Identity(method, identity.base64("value") if method in CHECKSUMS else identity.required_text("value"))


def _read_content(fields: Fields) -> Content | None:
    content = fields.inner("content")
    if content is None:
        return None
    encoding, value = content.text("encoding"), content.text("value")
    if value is None:
        content.problem("value", "is missing")
    if encoding == "base64":
        return Content("base64", content.base64("value") if value else "")
    if encoding != "utf-8":
        content.problem("encoding", f"expected 'utf-8' or 'base64', not {encoding!r:.80}")
    if any("\ud800" <= character <= "\udfff" for character in value or ""):
        content.problem("value", "half of a surrogate pair is not UTF-8")
    return Content("utf-8", value or "")


def _read_operation(fields: Fields) -> FileOperation | None:
    operation = fields.inner("fileOp")
    if operation is None:
        return None
    for name in operation.values:
        if name not in OPERATIONS:
            operation.problem(name, f"unknown operation; known are {', '.join(OPERATIONS)}")
    return FileOperation(
        link=operation.text("link"),
        removed="remove" in operation.values,
        directory=not operation.values.keys().isdisjoint(("directory", "mkdir")),
        renamed_from=operation.text("rename"),
    )


def _read_blocks(fields: Fields) -> Blocks | None:
    blocks = fields.inner("blocks")
    if blocks is None:
        return None
    listed = blocks.inner("manifest")
    manifest = _read_manifest(listed) if listed else {}
    stated = blocks.number("count")
    count, number = len(manifest) if stated is None else stated, blocks.required_number("number")
    if number >= count:
        blocks.problem("number", f"there are {count} blocks, and no number {number}")
    return Blocks(
        method=blocks.required_text("method"),
        size_bytes=blocks.required_number("size"),
        count=count,
        number=number,
        manifest=manifest,
    )


def _read_manifest(listed: Fields) -> dict[int, Block]:
    manifest: dict[int, Block] = {}
    for name in listed.values:
        block, number = listed.inner(name), whole_number(name)
        if block is None or number is None:
            listed.problem(name, "expected a block's number, and an object")
        else:
            manifest[number] = Block(block.required_number("size"), block.base64("identity"))
    return manifest
