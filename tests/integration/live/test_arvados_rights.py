"""The rights of a cluster's user on a stage follow rows of its database: of links, groups and users."""

import json
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from signalbox.aws.live.arvados_cluster import CURRENT_USER
from signalbox.clients.deployment import Deployment
from tests.fakes.arvados.cluster import SYSTEM, ArvadosCluster
from tests.fakes.issuer import Answer, running_issuer
from tests.integration.live.arvados_lab import Lab
from tests.integration.live.arvados_realm import only_arvados_realm
from tests.integration.live.arvados_sdk import SdkClient, sdk_client
from tests.integration.live.tls_endpoint import tls_endpoint
from tests.patience import wait_for

pytestmark = [pytest.mark.emulator, pytest.mark.release]

TOKEN = "v2/zzzzz-gj3su-00000000000000d/0123456789abcdefghijklmnopqrstuvwxyz"
# The bridge reads the permissions after a row that changes them, and by time. Here that is once a day and not each
# 30 s, so that only a row can have an effect.
BRIDGE = """
from signalbox.cli.main import main
from signalbox.clients.bridge import permissions

permissions.CHECK_SECONDS = 86_400.0
main()
"""


def is_seen(cluster: ArvadosCluster, client: SdkClient, shared: str, own: str) -> bool:
    """Change a shared collection and then the user's own, which is always seen; return whether the first is, too."""
    seen: list[str] = []
    for uuid in (shared, own):
        cluster.update(uuid, name=f"after {len(cluster.rows)} rows")
    while own not in seen:
        seen += [one["object_uuid"] for one in client.next(1)]
    return shared in seen


def test_a_row_that_changes_a_permission_changes_what_a_connected_client_receives(
    lab: Lab, deployment: Deployment, tmp_path: Path
):
    cluster, lab.program = ArvadosCluster(lab.database), [sys.executable, "-c", BRIDGE]
    user = cluster.create("user", SYSTEM, is_active=True, is_admin=False)
    project = cluster.create("group", SYSTEM)
    shared, own = (cluster.create("collection", owner) for owner in (project, user))
    links: list[str] = []
    steps: list[tuple[Callable[[], object], bool]] = [
        (lambda: links.append(cluster.permit(user, project)), True),
        (lambda: cluster.revoke(links[0]), False),
        (partial(cluster.permit, user, project), True),
        (partial(cluster.update, user, is_active=False), False),
        (partial(cluster.update, user, is_active=True), True),
        (partial(cluster.trash, project), False),
    ]
    with running_issuer() as api:
        api.answers = {
            CURRENT_USER: Answer((json.dumps({"uuid": user, "is_active": True, "is_admin": False}).encode(),))
        }
        administrator = only_arvados_realm(deployment, lab.place.realm, arvados_api=api.url)
        for word in ("{user}", "{group}"):
            grant = {"user": "@everyone", "exchange": lab.place.realm, "right": "read", "match": "wildcard"}
            administrator.ask("grant", {**grant, "uri": f"record..{word}.."})
        with lab.running(), tls_endpoint(lab.place.url, tmp_path) as endpoint:
            lab.wait_for_bridges(1)
            events = [["event_type", "in", ["update"]]]
            with sdk_client(endpoint, urlsplit(lab.place.url).path, TOKEN, events) as client:
                assert client.next(1) == [{"status": 200}]
                look = partial(is_seen, cluster, client, shared, own)
                assert not look()
                for number, (change, expected) in enumerate(steps):
                    change()
                    wait_for(lambda expected=expected: look() is expected, f"the effect of step {number}")
                    assert look() is expected
