"""`signalbox split kubernetes`: rights of a stage in Kubernetes clusters, and the definitions of registries."""

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated

import typer

from signalbox.cli.shared.option_groups import CommandGroup
from signalbox.cli.shared.output import print_json, print_line, print_text
from signalbox.cli.shared.stage import Json, Stage
from signalbox.errors import RejectedError
from signalbox.splitting.consumers import rbac as roles
from signalbox.splitting.consumers.definitions import definitions
from signalbox.splitting.consumers.rbac import Document, RoleRights
from signalbox.splitting.model.target import Target

app = CommandGroup("Kubernetes clusters whose workloads may be split.")

Workloads = Annotated[
    list[str] | None,
    typer.Option("--target", help="Workload that may be split; repeatable.", metavar="KIND/NAME[@NAMESPACE]"),
]
Namespace = Annotated[str, typer.Option(help="Namespace of workloads that are given without one.")]
ConfigMaps = Annotated[
    list[str] | None,
    typer.Option(
        "--config-map",
        help="Config map with names of queues; repeatable. Default: all of the namespace.",
        metavar="NAME",
    ),
]
NoConfigMaps = Annotated[
    bool, typer.Option("--no-config-maps", help="Allow no config map: all queue names are in variables.")
]
Crd = Annotated[bool, typer.Option("--crd", help="Allow reading mirrord's registries in the namespace.")]
SharedLists = Annotated[
    bool, typer.Option("--shared-lists", help="Allow reading property lists in the namespace of mirrord's operator.")
]
ServiceAccount = Annotated[
    str | None,
    typer.Option(
        help="Service account of the stage outside of EKS; default: the group signalbox:STAGE of EKS.",
        metavar="NAMESPACE/NAME",
    ),
]


@app.command()
def rbac(
    *,
    target: Workloads = None,
    namespace: Namespace = "default",
    config_map: ConfigMaps = None,
    no_config_maps: NoConfigMaps = False,
    crd: Crd = False,
    shared_lists: SharedLists = False,
    service_account: ServiceAccount = None,
    stage: Stage = "signalbox",
    as_json: Json = False,
) -> None:
    """Print the minimal role for splitting workloads, and its binding; needs no stage and no cluster.

    An administrator of the cluster applies it: `signalbox split kubernetes rbac … | kubectl apply -f -`.
    """
    if no_config_maps and config_map:
        raise RejectedError("give either --config-map or --no-config-maps")
    rights = roles.RoleRights(
        tuple(_placed(Target.parse(text), namespace) for text in target or ()),
        config_maps=() if no_config_maps else None if config_map is None else tuple(config_map),
        reads_registries=crd,
        reads_shared_lists=shared_lists,
    )
    subject = roles.group(stage) if service_account is None else roles.service_account(service_account)
    documents = roles.role_documents(rights, name=f"signalbox-{stage}", subject=subject)
    _print_manifest(documents, _remarks(rights, subject), as_json=as_json)


@app.command()
def crd(*, as_json: Json = False) -> None:
    """Print the definitions of mirrord's registries, for a cluster without mirrord's operator.

    An administrator of the cluster applies them with `kubectl apply -f`.
    """
    remark = "Apply them as an administrator of a cluster without mirrord's operator, whose chart has its own."
    _print_manifest(definitions(), [remark], as_json=as_json)


def _print_manifest(documents: Sequence[Document], remarks: Iterable[str], *, as_json: bool) -> None:
    if as_json:
        print_json({"apiVersion": "v1", "kind": "List", "items": list(documents)})
        return
    import yaml

    for line in remarks:
        print_line(f"# {line}")
    unshared = json.loads(json.dumps(list(documents)))  # YAML would refer to a shared part by an anchor
    print_text(yaml.safe_dump_all(unshared, sort_keys=False, explicit_start=True).rstrip("\n"))


def _placed(target: Target, namespace: str) -> Target:
    return target.placed(namespace, None) if target.is_on_kubernetes else target


def _remarks(rights: RoleRights, subject: Document) -> Iterator[str]:
    yield "Apply it as an administrator of the cluster: kubectl apply -f FILE"
    yield f"It gives {subject['kind']} {subject['name']} what splitting needs, and nothing else."
    if rights.config_maps is None:
        yield "It allows reading every config map of the namespace; limit it to those with queue names by --config-map."
