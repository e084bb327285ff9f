"""The command `signalbox log export`: the logs of topics as text files on this machine."""

from pathlib import Path
from typing import Annotated

import typer

from signalbox.cli.history.jobs import run_jobs
from signalbox.cli.history.names import is_live
from signalbox.cli.history.output_folder import check_writable, output_folder
from signalbox.cli.shared.option_groups import CommandGroup
from signalbox.cli.shared.output import print_json, print_line
from signalbox.cli.shared.stage import OutputOptions, output, say
from signalbox.errors import RejectedError
from signalbox.exchange.matching.trie import BindingTrie
from signalbox.exchange.model.patterns import Pattern
from signalbox.exchange.model.topics import RoutingKey

app = CommandGroup("Export the logs of topics of live exchanges.")


@app.command()
def export(
    *,
    exchange: Annotated[str, typer.Argument(help="A live exchange.", metavar="EXCHANGE")],
    topics: Annotated[str, typer.Option(help="Only matching topics, such as `jobs.*.log`.", metavar="PATTERN")] = "#",
    folder: Annotated[Path | None, typer.Option(help="Folder for the files; default: .signalbox/logs.")] = None,
    options: OutputOptions,
) -> None:
    """Export the events of a live exchange, and save one text file for each topic and day."""
    from signalbox.aws.history.log_files import download_logs

    wanted: BindingTrie[str] = BindingTrie()
    wanted.add(Pattern.parse(topics), exchange)
    deployment = options.deployment()
    home = output_folder(deployment, folder, "logs")
    check_writable(home)
    s3, bucket = deployment.session().client("s3"), output(deployment, "HistoryBucket")
    if is_live(deployment, exchange):
        run_jobs(deployment, [("export_logs", {"exchange": exchange, "topics": topics})], say)
    found = download_logs(
        s3, bucket, exchange, is_selected=lambda topic: bool(wanted.matching(RoutingKey(topic))), home=home
    )
    paths = list(found)
    if not paths:
        raise RejectedError(f"exchange {exchange!r} has no events of topics {topics!r}")
    if options.as_json:
        print_json([str(path) for path in paths])
        return
    for path in paths:
        print_line(str(path))
