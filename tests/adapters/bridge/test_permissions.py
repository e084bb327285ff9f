"""The permissions of a cluster as groups of a realm, from PostgreSQL: what each user may read now."""

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest

from signalbox.clients.bridge.permissions import (
    ADMINISTRATORS,
    COMMANDS_PER_READ,
    MAXIMUM_GROUPS,
    USERS_PER_COMMAND,
    PermissionSync,
    PostgresPermissions,
)
from signalbox.clients.bridge.worker import Worker
from tests.fakes.arvados.cluster import SYSTEM, ArvadosCluster, new_uuid
from tests.patience import wait_for
from tests.postgres import ClusterDatabase

PROJECT, OTHER = new_uuid("group"), new_uuid("group")


@dataclass(slots=True)
class Realm:
    """The groups of a realm's users; each command changes at most two memberships, first those that end."""

    at_once: int = 2
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
        left.sort(key=lambda one: one[1] not in self.groups[one[0]])
        for user, group in left[: self.at_once]:
            self.groups[user] ^= {group}
        return {"changed": len(left[: self.at_once]), "left": len(left[self.at_once :])}


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

    assert worker.figures() == {"memberships_changed": 6, "users_limited": 0}


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


def test_what_one_owner_shares_takes_no_place_of_what_others_share(stage):
    ann, mallory = new_user(stage), new_user(stage)
    top, own = (stage.cluster.create("group", owner) for owner in (mallory, ann))
    others = [stage.cluster.create("group", new_user(stage)) for _ in range(2)]
    execute = stage.cluster.database.connection.execute
    insert = b"INSERT INTO groups (uuid, owner_uuid, created_at) VALUES (%s, %s, '2000-01-01')"
    for number in range(MAXIMUM_GROUPS):
        execute(insert, [f"zzzzz-j7d0g-{number:015}", top])
    execute(b"INSERT INTO materialized_permissions SELECT %s, uuid, 1, true FROM groups", [ann])
    stage.cluster.permit(ann, mallory)
    stage.realm.at_once = MAXIMUM_GROUPS
    worker = stage.worker()
    with worker.running():
        wait_for(lambda: len(stage.realm.groups.get(ann, ())) == MAXIMUM_GROUPS, "the groups", seconds=20)
        worker.wake()

    assert {own, *others, mallory} < stage.realm.groups[ann]
    assert worker.figures()["users_limited"] == 1
    assert stage.said == [f"permissions: 1 users may read more than the {MAXIMUM_GROUPS} groups that they get"]


def test_what_ends_is_sent_before_what_begins():
    users = [f"zzzzz-tpzed-{number:015}" for number in range(COMMANDS_PER_READ * USERS_PER_COMMAND + 1)]
    first, last = users[0], users[-1]
    realm, readings = Realm(at_once=len(users)), []
    begun = dict.fromkeys(users, frozenset({PROJECT, OTHER}))

    class Permissions:
        def groups_by_user(self) -> Mapping[str, frozenset[str]]:
            readings.append(realm.commands)
            if len(readings) <= 2:
                return dict.fromkeys(users, frozenset({PROJECT}))
            return begun if len(readings) == 3 else {**begun, last: frozenset(), first: frozenset({PROJECT})}

    connect = partial(nullcontext, Permissions())
    worker = Worker("permissions", PermissionSync(realm.ask, "xs_lab.fifo", connect, print).work, dict, print)
    with worker.running():
        wait_for(lambda: len(readings) == 2 and realm.groups.get(last), "the first groups", seconds=20)
        realm.at_once = 2
        worker.wake()
        wait_for(lambda: len(readings) > 4, "a reading after some commands", seconds=20)

    assert readings[3] - readings[2] == COMMANDS_PER_READ
    assert (realm.groups[first], realm.groups[last]) == ({PROJECT}, set())


def test_a_user_who_is_deleted_loses_all_groups(stage):
    ann = new_user(stage)
    stage.cluster.permit(ann, PROJECT)
    worker = stage.worker()
    with worker.running():
        stage.wait_for(ann, PROJECT)
        stage.cluster.delete(ann)
        worker.wake()

        stage.wait_for(ann)
