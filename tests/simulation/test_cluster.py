"""The simulated cluster answers as a real one: the tests of the adapter for Kubernetes, on the simulation."""

from typing import Any

import boto3
import pytest

from signalbox.aws.splitting.kubernetes.access import ApiAddress, Remedies
from signalbox.aws.splitting.kubernetes.client import ClusterClient
from signalbox.aws.splitting.targets.kubernetes import KubernetesTargets
from signalbox.aws.splitting.targets.original_queues import OriginalQueues
from signalbox.aws.splitting.targets.workloads import Workloads
from signalbox.filters.languages import Languages
from signalbox.local.cluster_api import ClusterApi
from signalbox.splitting.consumers.environment import Resolver
from tests.adapters.splitting.test_kubernetes_targets import (  # noqa: F401 - these are the tests
    ORDERS,
    Workload,
    test_a_manifest_that_its_owner_applies_again_is_noticed_and_switched_again,
    test_a_name_from_a_config_map_is_a_plain_value_while_the_workload_is_switched,
    test_a_name_from_env_from_is_overridden_while_the_workload_is_switched,
    test_a_patch_that_adds_the_source_of_a_switched_variable_is_refused,
    test_a_variable_that_the_workload_lacks_is_added_with_the_fallback_and_removed,
    test_a_workload_is_switched_and_is_as_before_after_the_way_back,
    test_a_workload_that_is_scaled_meanwhile_is_switched,
    test_an_owner_that_applies_a_name_from_a_config_map_again_wins,
    test_another_queue_of_the_owner_stays,
    test_every_manager_of_a_variable_gets_its_field_back,
    test_fields_that_were_applied_on_the_server_return_to_their_manager,
    test_what_the_owner_changes_during_the_split_stays,
)
from tests.fakes.aws import aws  # noqa: F401 - a fixture
from tests.fakes.clock import MemoryTime
from tests.fakes.splitting import MemoryAnnotations
from tests.kubernetes.cluster import Namespace
from tests.simulation.calls import Calls
from tests.simulation.cluster import SERVICE, Response, SimulatedCluster, SimulatedPool
from tests.simulation.kernel import Kernel
from tests.unit.splitting.consumers.registries import HOME

ADDRESS = ApiAddress("https://cluster.example", "")


class PassingPool(SimulatedPool):
    """A pool with which each call takes a second, in which rollouts go on."""

    def request(self, method: str, url: str, **options: Any) -> Response:
        kernel = self.calls.kernel
        kernel.run(kernel.now + 1)
        return super().request(method, url, **options)


class Administrator:
    """The access of the cluster's administrator."""

    remedies = Remedies("", "", "", "")

    def connection(self, *, again: bool = False) -> ApiAddress:
        return ADDRESS

    def token(self, *, again: bool = False) -> str:
        return "token"


@pytest.fixture
def workload(aws: None) -> Workload:  # noqa: F811 - a fixture
    sqs = boto3.client("sqs")
    sqs.create_queue(QueueName=ORDERS, Attributes={"VisibilityTimeout": "45"})
    calls = Calls(Kernel(1))
    calls.services[SERVICE] = SimulatedCluster(calls.kernel)
    pool: Any = PassingPool(calls)
    client = ClusterClient("test", Administrator())
    client._pool = (ADDRESS, pool, pool)
    annotations, time = MemoryAnnotations(), MemoryTime()
    workloads = Workloads(lambda _: client)
    targets = KubernetesTargets(workloads, OriginalQueues(sqs), Resolver(Languages(), HOME), annotations, time.now)
    return Workload(Namespace(ClusterApi(ADDRESS.endpoint, "token", pool), "shop"), targets, annotations, time)
