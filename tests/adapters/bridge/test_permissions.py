"""The permissions of a cluster as groups of a realm, from PostgreSQL: what each user may read now."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest

from signalbox.clients.bridge.permissions import ADMINISTRATORS, MAXIMUM_GROUPS, PermissionSync, PostgresPermissions
from signalbox.clients.bridge.worker import Worker
from tests.fakes.arvados.cluster import SYSTEM, ArvadosCluster, new_uuid
from tests.patience import wait_for
from tests.postgres import ClusterDatabase

PROJECT, OTHER = new_uuid("group"), new_uuid("group")


@dataclass(slots=True)
class Realm:
    """The groups of a realm's users; each command changes at most two memberships."""

    groups: dict[str, set[str]] = field(default_factory=dict)
    commands: int = 0

    def ask(self, command: str, fields: Mapping[str, Any]) -> object:
        assert (command, fields["exchange"]) == ("user_groups", "xs_lab.fifo")
        self.commands += 1
        left = [
            (user, group)
            for user, wanted in fields["groups"].items()
            for group in self.groups.setdefault(user, set()) ^ set(wanted)
        ]
        for user, group in left[:2]:
            self.groups[user] ^= {group}
        return {"changed": len(left[:2]), "left": len(left[2:])}


@dataclass(slots=True)
class Stage:
    """A cluster and a realm whose groups follow it."""

    cluster: ArvadosCluster
    realm: Realm = field(default_factory=Realm)
    said: list[str] = field(default_factory=list)

    def worker(self) -> Worker:
        connect = partial(PostgresPermissions.connect, self.cluster.database.dsn)
        sync = PermissionSync(self.realm.ask, "xs_lab.fifo", connect, self.said.append)
        return Worker("permissions", sync.work, sync.figures, self.said.append)

    def wait_for(self, user: str, *groups: str) -> None:
        wait_for(lambda: self.realm.groups.get(user) == {*groups}, f"the groups {groups}", seconds=20)


@pytest.fixture
def stage(cluster_database: ClusterDatabase) -> Stage:
    return Stage(ArvadosCluster(cluster_database))


def new_user(stage: Stage, **attributes: object) -> str:
    return stage.cluster.create("user", SYSTEM, **{"is_active": True, "is_admin": False, **attributes})


def test_groups_follow_the_permissions(stage):
    ann, ben = new_user(stage), new_user(stage)
    links = [stage.cluster.permit(ann, one) for one in (PROJECT, OTHER, new_uuid("group"))]
    stage.realm.groups[ben] = {PROJECT}  # of an earlier run, and ended meanwhile
    worker = stage.worker()
    with worker.running():
        stage.wait_for(ann, *(stage.cluster.objects[one]["head_uuid"] for one in links))
        stage.wait_for(ben)

        stage.cluster.permit(ben, OTHER, "can_manage")
        stage.cluster.revoke(links[0])
        worker.wake()

        stage.wait_for(ben, OTHER)
        stage.wait_for(ann, *(stage.cluster.objects[one]["head_uuid"] for one in links[1:]))

    assert worker.figures() == {"memberships_changed": 6, "users_refused": 0}


def test_administrators_have_a_group_and_inactive_users_none(stage):
    admin, inactive = new_user(stage, is_admin=True), new_user(stage, is_active=False, is_admin=True)
    stage.cluster.permit(admin, PROJECT)
    stage.cluster.permit(inactive, PROJECT)
    with stage.worker().running():
        stage.wait_for(admin, ADMINISTRATORS)
        stage.wait_for(inactive)


def test_what_is_in_the_trash_and_single_objects_give_no_group(stage):
    ann, boss = new_user(stage), new_user(stage)
    for target in (PROJECT, OTHER, ann, boss, new_uuid("collection")):
        stage.cluster.permit(ann, target)
    execute = stage.cluster.database.connection.execute
    execute(b"UPDATE materialized_permissions SET traverse_owned = false WHERE target_uuid = %s", [boss])
    past = datetime.now(UTC).replace(tzinfo=None) - timedelta(seconds=1)
    execute(b"INSERT INTO trashed_groups VALUES (%s, %s), (%s, %s)", [PROJECT, past, OTHER, past + timedelta(days=1)])

    with stage.worker().running():
        stage.wait_for(ann, OTHER)


def test_a_user_with_more_groups_than_a_realm_holds_has_none_and_is_named_once(stage):
    ann, ben = new_user(stage), new_user(stage)
    insert = b"INSERT INTO materialized_permissions VALUES (%s, %s, 1, true)"
    for number in range(MAXIMUM_GROUPS + 1):
        stage.cluster.database.connection.execute(insert, [ann, f"zzzzz-j7d0g-{number:015}"])
    stage.cluster.permit(ben, PROJECT)
    worker = stage.worker()
    with worker.running():
        stage.wait_for(ben, PROJECT)
        worker.wake()
        stage.wait_for(ann)

    assert worker.figures()["users_refused"] == 1
    assert stage.said == [f"permissions: 1 users may read more than {MAXIMUM_GROUPS} groups, and get none"]


def test_a_user_who_is_deleted_loses_all_groups(stage):
    ann = new_user(stage)
    stage.cluster.permit(ann, PROJECT)
    worker = stage.worker()
    with worker.running():
        stage.wait_for(ann, PROJECT)
        stage.cluster.delete(ann)
        worker.wake()

        stage.wait_for(ann)
