"""`signalbox split registry`: the registries of deployed consumers."""

import json
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from signalbox.cli.shared.files import read_text
from signalbox.cli.shared.option_groups import CommandGroup
from signalbox.cli.shared.output import print_json, print_line, print_table, print_text
from signalbox.cli.shared.stage import SETTINGS_OUTPUT, Json, OutputOptions, local_time, output, say
from signalbox.cli.splitting.stage import TargetName, control, control_of, warn_not_split
from signalbox.errors import RejectedError
from signalbox.filters.languages import Languages
from signalbox.splitting.consumers.registry_file import parse_registries, queues_of_other_brokers
from signalbox.splitting.consumers.registry_summary import registry_summary
from signalbox.splitting.model.target import Target

if TYPE_CHECKING:
    from signalbox.clients.deployment import Deployment

SETTING = "splittable_targets"

app = CommandGroup("Registries of the deployed consumers, in mirrord's format.")

File = Annotated[Path, typer.Option("--file", "-f", help="YAML file with mirrord's resources; - for standard input.")]
Output = Annotated[Path | None, typer.Option("--output", "-o", help="File to write; standard output if not given.")]


@app.command()
def check(*, file: File, as_json: Json = False) -> None:
    """Check a file without a stage; show the queues of each registry and the source of each name."""
    documents = parse_documents(read_text(file), str(file))
    found = [registry_summary(one) for one in parse_registries(documents, Languages())]
    warn_not_split(queues_of_other_brokers(documents))
    if as_json:
        print_json(found)
        return
    rows = ((one["target"], queue["id"], "\n".join(queue["names"])) for one in found for queue in one["queues"])
    print_table(["target", "queue", "names from"], rows)


@app.command()
def apply(*, file: File, options: OutputOptions) -> None:
    """Store the registries of a file; each replaces the earlier registry of its target."""
    documents = parse_documents(read_text(file), str(file))
    deployment = options.deployment()
    parse_registries(documents, Languages(), prefix=output(deployment, "TemporaryQueuePrefix"))
    warn_not_split(queues_of_other_brokers(documents))
    with control_of(deployment, says_where=True) as client:
        result = client.ask("apply", {"documents": documents})
    targets = result["targets"] if isinstance(result, dict) else ()
    _warn_not_permitted(deployment, targets)
    if options.as_json:
        print_json(result)
        return
    for target in targets:
        print_line(f"{target}  applied; a running split keeps its registry")


def _warn_not_permitted(deployment: "Deployment", targets: Iterable[str]) -> None:
    """Name the targets that the stage may not switch; Kubernetes workloads are permitted by a role in their cluster."""
    permitted = json.loads(deployment.outputs.get(SETTINGS_OUTPUT, "{}")).get(SETTING, "")
    patterns = [one.replace("ssm//", "ssm/", 1) for one in permitted.split(",")]
    for target in targets:
        name = target.replace("ssm//", "ssm/", 1).partition(":")[0]
        if name.startswith(("lambda/", "ecs/", "ssm/")) and not any(fnmatchcase(name, one) for one in patterns):
            say(
                f"{target} cannot be split on this stage: {SETTING} has {permitted or 'no target'}; "
                f"an administrator adds it with `signalbox deploy`"
            )


def parse_documents(text: str, name: str) -> list[object]:
    """Return the documents of a YAML file as JSON values. Raises `RejectedError`."""
    import yaml

    try:
        found = [one for one in yaml.safe_load_all(text) if one is not None]
        # Types that only YAML has, such as times in the metadata, are not used: their text is enough.
        return list(json.loads(json.dumps(found, default=str)))
    except (yaml.YAMLError, ValueError, TypeError, RecursionError) as error:
        raise RejectedError(f"{name!r} is not YAML with JSON values: {error}") from error


@app.command()
def remove(*, target: TargetName, options: OutputOptions) -> None:
    """Remove a target's registry; a running split keeps it."""
    with control(options, says_where=True) as client:
        result = client.ask("remove", {"target": str(Target.parse(target))})
    if options.as_json:
        print_json(result)
    elif isinstance(result, dict):
        print_line(f"{result['target']}  removed; a running split keeps its registry")


@app.command()
def discover(
    *,
    target: TargetName,
    write_to: Output = None,
    options: OutputOptions,
) -> None:
    """Discover the queues that a target consumes, and write a registry for review."""
    with control(options) as client:
        result = client.ask("discover", {"target": target})
    documents = result.get("documents", []) if isinstance(result, dict) else []
    text = json.dumps(documents, indent=2) + "\n" if options.as_json else _yaml(documents)
    if write_to is None:
        print_text(text.rstrip("\n"))
        return
    try:
        write_to.write_text(text)
    except OSError as error:
        raise RejectedError(f"cannot write {str(write_to)!r}: {error}") from error
    say(f"{write_to} written: review it, then run `signalbox split registry apply -f {write_to}`")


def _yaml(documents: Sequence[object]) -> str:
    import yaml

    return yaml.safe_dump_all(documents, sort_keys=False, explicit_start=len(documents) > 1)


@app.command(name="list")
def list_registries(*, options: OutputOptions) -> None:
    """List the targets that have a registry."""
    with control(options) as client:
        result = client.ask("registries")
    if options.as_json:
        print_json(result)
        return
    found = result if isinstance(result, list) else []
    if not found:
        print_line("no registries")
        say("`signalbox split registry discover` writes one, `signalbox split registry apply` stores it")
        return
    rows = ((one["target"], one["source"], local_time(one["applied_at"]), _kinds(one)) for one in found)
    print_table(["target", "from", "at", "kinds"], rows)


def _kinds(registry: dict[str, object]) -> str:
    documents = registry.get("documents")
    kinds = [str(one.get("kind")) for one in documents if isinstance(one, dict)] if isinstance(documents, list) else []
    return ", ".join(dict.fromkeys(kinds))
