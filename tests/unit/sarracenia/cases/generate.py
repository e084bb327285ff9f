"""Has the real sr3_post announce a tree of files, and stores what it sends; needs no network and no broker.

    python3 -m venv /tmp/sr3 && /tmp/sr3/bin/pip install metpx-sr3==3.3.1
    /tmp/sr3/bin/python tests/unit/sarracenia/cases/generate.py

Only AMQP's connection is replaced, by one that remembers what is published; all else is sr3's own, from the
configuration file to the topic. A case has sr3's options, the same for PostSettings, and the messages, whose times of
publication are taken out. `TREE` is made anew for each case, here and in the test.
"""

import json
import os
import re
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

# A path is a directory (None), a link (its target, a text) or a file (its bytes); a file's times are FILE_TIMES.
TREE = {
    "data": None,
    "data/bulletins": None,
    "data/bulletins/CA": None,
    "data/bulletins/CA/SACN31_CWAO_142200": b"SACN31 CWAO 142200\r\r\nMETAR =\n",
    "data/bulletins/empty.txt": b"",
    "data/bulletins/latest": "CA/SACN31_CWAO_142200",
    "data/a b#c*": None,
    "data/a b#c*/d e#f*.txt": "Bonjour, févrièr\n".encode(),
    "data/a b#c*/latin.txt": b"f\xe9vrier\n",
    "data/v1.2": None,
    "data/v1.2/café": None,
    "data/v1.2/café/温度.json": b"{}",
    "data/v1.2/big.bin": bytes(range(256)) * 20,
}
MODES = {"data/bulletins/CA/SACN31_CWAO_142200": 0o600, "data/v1.2": 0o2750}
FILE_TIMES = (1_700_000_000_250_000_000, 1_700_000_000_000_000_000)  # read, written; in nanoseconds
PLAIN = {"base_url": "https://data.example.com/", "base_directory": "ROOT", "source": "alice"}
CASES = {
    "plain": ([], {}),
    "v02": (["post_format v02"], {"form": "v02"}),
    "prefix": (["post_topicPrefix x.y"], {"topic_prefix": "x.y"}),
    "source": (["source Weather"], {"source": "Weather"}),
    "content": (["inline on", "inlineByteMax 4096"], {"content_limit_bytes": 4096}),
    "content_of_few_bytes": (["inline on", "inlineByteMax 17"], {"content_limit_bytes": 17}),
    "md5": (["identity md5"], {"method": "md5"}),
    "v02_md5": (["identity md5", "post_format v02"], {"method": "md5", "form": "v02"}),
    "on_download": (["identity cod,sha512"], {"method": "cod,sha512"}),
    "v02_on_download": (["identity cod,md5", "post_format v02"], {"method": "cod,md5", "form": "v02"}),
    "random": (["identity random"], {"method": "random"}),
    "none": (["identity none"], {"method": "none"}),
    "blocks": (["blockSize 2000"], {"block_bytes": 2000}),
    "v02_blocks": (["blockSize 2000", "post_format v02"], {"block_bytes": 2000, "form": "v02"}),
    "even_blocks": (["blockSize 1280"], {"block_bytes": 1280}),
    "one_directory": (["recursive off"], {}),
    "no_base_directory": (["post_baseDir"], {"base_directory": None}),
    "base_directory_itself": (["post_baseDir ROOT/data"], {"base_directory": "ROOT/data"}),
    "url_with_path": (["post_baseUrl https://e/data/"], {"base_url": "https://e/data/"}),
    "url_without_slash": (["post_baseUrl https://e/pub"], {"base_url": "https://e/pub"}),
    "url_of_files": (["post_baseUrl file:ROOT/", "post_baseDir"], {"base_url": "file:ROOT/", "base_directory": None}),
}


def plant(root: Path) -> None:
    """Create the tree of files below a root."""
    for name, content in TREE.items():
        path = root / name
        if content is None:
            path.mkdir()
            path.chmod(MODES.get(name, 0o755))
        elif isinstance(content, str):
            path.symlink_to(content)
        else:
            path.write_bytes(content)
            path.chmod(MODES.get(name, 0o644))
            os.utime(path, ns=FILE_TIMES)


class Connection:
    """An AMQP connection that records published messages."""

    connected = is_open = True
    published: list[dict] = []  # noqa: RUF012 - one for all, since sr3 makes the connections

    def __init__(self, *_, **__) -> None:
        pass

    def channel(self, _number: int) -> "Connection":
        return self

    def basic_publish(self, message, exchange: str, topic: str, **_) -> None:
        headers = dict(message.properties.get("application_headers") or {})
        content_type = message.properties["content_type"]
        body = message.body
        self.published.append(
            {
                "exchange": exchange,
                "routing_key": topic,
                "headers": headers,
                "body": json.loads(body) if content_type == "application/json" else body,
                "content_type": content_type,
            }
        )

    def __getattr__(self, _name: str) -> Callable[..., None]:
        return lambda *_, **__: None


def posted(root: Path, options: list[str]) -> list[dict]:
    import sarracenia.moth.amqp  # noqa: PLC0415 - the test reads this file where there is no sr3
    import sarracenia.sr_post  # noqa: PLC0415

    sarracenia.moth.amqp.amqp.Connection = Connection
    Connection.published.clear()
    folder = Path.home() / ".config" / "sr3" / "post"
    folder.mkdir(parents=True, exist_ok=True)
    settings = {
        "post_broker": "amqp://alice:secret@localhost/",
        "post_exchange": "xs_alice",
        "post_baseUrl": "https://data.example.com/",
        "post_baseDir": str(root),
        "permCopy": "on",
        "timeCopy": "on",
    }
    settings.update({name: value for name, _, value in (option.partition(" ") for option in options)})
    lines = [f"{name} {value}".replace("ROOT", str(root)) for name, value in settings.items() if value]
    (folder / "case.conf").write_text("\n".join(lines) + "\n")
    sys.argv = ["sr3_post", "-c", "case", "-p", str(root / "data")]
    sarracenia.sr_post.main()
    return [without_time(message) for message in Connection.published]


def without_time(message: dict) -> dict:
    """Remove the time of publication, and mask `atime`, in which sr3 3.3.1 writes the ctime."""
    if isinstance(message["body"], dict):
        del message["body"]["pubTime"]
    else:
        message["body"] = message["body"].partition(" ")[2]
    for fields in (message["body"], message["headers"]):
        if "atime" in fields and isinstance(fields, dict):
            fields["atime"] = "…"
    return message


def names_of(root: Path) -> dict[str, str]:
    """Map each form of the root in messages to its placeholder in the cases."""
    path = str(root)[1:]
    return {f"/{path}": "ROOT", path: "RELATIVE", path.replace("/", "."): "DOTTED"}


def main() -> None:
    for name, (options, posting) in CASES.items():
        with tempfile.TemporaryDirectory() as home, tempfile.TemporaryDirectory() as folder:
            os.environ["HOME"] = home
            root = Path(folder) / "root"
            root.mkdir()
            plant(root)
            messages = json.dumps(posted(root, options), ensure_ascii=False, indent=1)
        for text, name_of_it in names_of(root).items():
            messages = messages.replace(text, name_of_it)
        case = {"options": options, "posting": {**PLAIN, **posting}, "messages": json.loads(messages)}
        target = Path(__file__).with_name(f"{name}.json")
        target.write_text(re.sub(r"\n\s+", "\n ", json.dumps(case, ensure_ascii=False, indent=1)) + "\n")
        print(name, len(case["messages"]))


if __name__ == "__main__":
    main()
