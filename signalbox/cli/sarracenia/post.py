"""The command `signalbox post`: announces files as sr3_post does, once or as they change."""

from pathlib import Path
from typing import Annotated

import typer

from signalbox.cli.exchange.stage import User, exchanges, seconds
from signalbox.cli.shared.stage import Aws, Stage
from signalbox.errors import RejectedError
from signalbox.queues import FIFO_SUFFIX
from signalbox.sarracenia.formats.content import DEFAULT_LIMIT_BYTES
from signalbox.sarracenia.formats.payloads import Format

USER_EXCHANGE = "xs_"
UNITS = {"k": 1024, "m": 1024**2, "g": 1024**3}  # powers of 1,024, as in sr3

Paths = Annotated[list[str], typer.Argument(help="Files, directories and links to announce.")]


def post(
    paths: Paths,
    *,
    exchange: Annotated[str, typer.Option(help="Exchange to publish to, such as xs_alice.", metavar="NAME")],
    base_url: Annotated[str, typer.Option(help="Base URL under which the files can be fetched.", metavar="URL")],
    base_dir: Annotated[
        Path | None, typer.Option(help="Directory that the base URL serves; if not given, `/`.")
    ] = None,
    recursive: Annotated[bool, typer.Option("--recursive", "-r", help="Include the entries of directories.")] = False,
    form: Annotated[Format, typer.Option("--format", help="Format of the messages.")] = Format.V03,
    topic_prefix: Annotated[
        str | None,
        typer.Option(help="First words of the topics; if not given, v03 or v02.post, by format.", metavar="WORDS"),
    ] = None,
    inline: Annotated[bool, typer.Option("--inline", help="Embed small contents in the messages.")] = False,
    inline_limit: Annotated[
        str, typer.Option(help="With --inline: embed contents smaller than this.", metavar="SIZE")
    ] = str(DEFAULT_LIMIT_BYTES),
    identity: Annotated[
        str,
        typer.Option(
            help="Identity method: sha512, md5, cod,sha512, cod,md5, random, arbitrary,VALUE or none.", metavar="METHOD"
        ),
    ] = "sha512",
    block_size: Annotated[
        str | None,
        typer.Option(help="Announce files larger than this in blocks of this size, such as 10M.", metavar="SIZE"),
    ] = None,
    source: Annotated[
        str | None, typer.Option(help="Owner of the files; if not given, the user, or the owner of the exchange.")
    ] = None,
    watch: Annotated[bool, typer.Option("--watch", help="Announce changes until interrupted.")] = False,
    existing: Annotated[bool, typer.Option("--existing", help="With --watch: announce existing files first.")] = False,
    every: Annotated[str, typer.Option(help="With --watch: interval between checks.", metavar="DURATION")] = "1s",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the messages without sending them.")] = False,
    user: User = None,
    aws: Aws = False,
    stage: Stage = "signalbox",
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON object for each message.")] = False,
) -> None:
    """Announce files, once or as they change, for sr3 and `signalbox subscribe` to download."""
    from signalbox.cli.sarracenia.poster import PostRun, PrintingSink, PublishingSink
    from signalbox.clients.sarracenia.tree_walk import absolute
    from signalbox.sarracenia.formats.identity import IdentityMethod
    from signalbox.sarracenia.formats.posts import PostSettings
    from signalbox.sarracenia.rights.names import parse_exchange_name

    settings = PostSettings(
        parse_exchange_name(exchange),
        base_url,
        base_directory=None if base_dir is None else absolute(str(base_dir)),
        form=form,
        topic_prefix=topic_prefix,
        method=IdentityMethod.parse(identity),
        source=source or user or _owner(exchange),
        block_bytes=None if block_size is None else size_bytes(block_size, "--block-size"),
        content_limit_bytes=size_bytes(inline_limit, "--inline-limit") if inline else None,
    )
    pause = seconds(every, "--every") or 0
    run = PostRun(settings, tuple(paths), recursive=recursive, watches=watch, existing=existing, seconds_between=pause)
    if dry_run:
        run.run(PrintingSink(as_json=as_json))
    else:
        begins = f"announcements to {exchange}" if watch else ""  # a watch ends by a signal
        with exchanges(aws=aws, stage=stage, user=user, says_where=not watch, begins=begins) as client:
            run.run(PublishingSink(client, settings.exchange, as_json=as_json))
    raise typer.Exit(1 if run.problems else 0)


def _owner(exchange: str) -> str | None:
    """Return the owner of an exchange, as sr3's sourceFromExchange does."""
    if not exchange.startswith(USER_EXCHANGE):
        return None
    return exchange.removeprefix(USER_EXCHANGE).removesuffix(FIFO_SUFFIX).partition("_")[0] or None


def size_bytes(text: str, option: str) -> int:
    """Parse a size such as `10M` into bytes. Raises `RejectedError`."""
    number, unit = (text[:-1], UNITS[text[-1].lower()]) if text[-1:].lower() in UNITS else (text, 1)
    if number.isascii() and number.isdigit() and int(number):
        return int(number) * unit
    raise RejectedError(f"{option}: expected a number of bytes, or one with k, M or G, not {text!r}")
