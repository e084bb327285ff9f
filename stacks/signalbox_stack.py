"""The stack of a stage: composes the capabilities, grants permissions and declares outputs."""

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from aws_cdk import Aws, CfnOutput, Stack
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from stacks.exchange.construct import ExchangeResources
from stacks.grants.exchange import grant_exchange
from stacks.grants.history import grant_delivery, grant_job, grant_overflow, grant_reader
from stacks.grants.live import grant_live, grant_live_routing
from stacks.grants.rendezvous import grant_doors, grant_front, grant_rendezvous
from stacks.grants.schedules import grant_schedules
from stacks.grants.splitting import grant_splitting
from stacks.history.job import HistoryJob
from stacks.history.jobs import HistoryJobs, schedule
from stacks.history.lake import TABLE, HistoryLake
from stacks.history.overflow import HistoryOverflow
from stacks.live.construct import LiveResources
from stacks.rendezvous.construct import RendezvousResources
from stacks.rendezvous.doors import Doors
from stacks.rendezvous.front import Front
from stacks.settings.config import Config
from stacks.settings.record import recorded
from stacks.shared.activity_sources import activity_sources
from stacks.shared.dashboard import Monitoring
from stacks.shared.function import Function, Surroundings, failure_alarm, program
from stacks.shared.part import Part, composed
from stacks.shared.queue import require_tls
from stacks.shared.schedules import Schedules, Task
from stacks.splitting.construct import SplittingResources
from stacks.state_stack import StateStack

# Functions that write no history.
READERS = ("page", "receive")


class SignalboxStack(Stack):
    """All resources without state of the stage's capabilities; safe to delete."""

    def __init__(
        self,
        scope: Construct,
        name: str,
        *,
        state: StateStack,
        config: Config,
        bridges: Sequence[str],
        **options: object,
    ) -> None:
        super().__init__(scope, name, **options)  # type: ignore[arg-type]  # passed through to the stack
        self.state, self.config = state.state, config
        # In the state stack, and also there without the capability: volunteers have the URLs in their settings.
        self.doors = _doors(state, config) if "rendezvous" in config.stored_parts else None
        self.lake = HistoryLake(self, "HistoryLake", state=self.state, config=config) if config.has("history") else None
        self.around = Surroundings(self.state, self.lake, program(self, config), config)
        self._compose()
        self.jobs: dict[str, HistoryJob] = {}
        self.overflow = None if self.lake is None else self._add_history(self.lake)
        if self.live is not None:
            self.live.functions["overview"].add_environment("ACTIVITY_SOURCES", self._activity_sources())
        self.schedules = Schedules(self, "Schedules", key=self.state.key, config=config)
        self._schedule()
        require_tls(self)
        failure_alarm(self, config)
        if config.dashboard:
            parts = list(self.parts.values())
            Monitoring(self, "Monitoring", parts=parts, lake=self.lake, jobs=self.jobs, config=config)
        self._name_results(bridges)

    def _compose(self) -> None:
        """Create the capabilities and grant their permissions."""
        config, add = self.config, partial(composed, self, around=self.around)
        self.rendezvous: RendezvousResources | None = None
        self.front: Front | None = None
        self.splitting: SplittingResources | None = None
        self.exchange: ExchangeResources | None = None
        self.live: LiveResources | None = None
        if config.has("rendezvous") and self.doors is not None:
            self.rendezvous = add("Rendezvous", RendezvousResources, grant_rendezvous, doors=self.doors)
        if config.is_front:
            self.front = add("Rendezvous", Front, grant_front)
        if config.has("splitting"):
            self.splitting = add("Splitting", SplittingResources, grant_splitting)
        if config.has("exchange"):
            self.exchange = add("Exchange", ExchangeResources, grant_exchange)
        if config.has("live") and self.exchange is not None:
            self.live = add("Live", LiveResources, grant_live)
            self.live.connect_to(self.exchange, state=self.state)
            grant_live_routing(self.exchange, live=self.live, state=self.state)

    def _add_history(self, lake: HistoryLake) -> HistoryOverflow:
        state, config = self.state, self.config
        overflow = HistoryOverflow(self, "HistoryOverflow", lake=lake, around=self.around)
        overflow.connect_to(self._writers)
        self.jobs = HistoryJobs(self, "HistoryJobs", state=state, lake=lake, config=config).jobs
        grant_delivery(lake, state=state)
        grant_reader(lake)
        grant_overflow(overflow, writers=self._writers, state=state)
        for job in self.jobs.values():
            grant_job(job, lake=lake, state=state, config=config)
        return overflow

    @property
    def parts(self) -> Mapping[str, Part]:
        """The capabilities except history, by name."""
        found = (self.rendezvous, self.front, self.splitting, self.exchange, self.live)
        return {part.node.id.lower(): part for part in found if part is not None}

    @property
    def _writers(self) -> Iterator[Function]:
        """The functions of this stack that write history."""
        for part in self.parts.values():
            own = {name: function for name, function in part.functions.items() if function.stack is self}
            yield from (function for name, function in own.items() if name not in READERS)

    def _activity_sources(self) -> str:
        queues: dict[str, Sequence[sqs.IQueue]] = {name: part.queues for name, part in self.parts.items()}
        functions: dict[str, Mapping[str, Function]] = {name: part.functions for name, part in self.parts.items()}
        if self.overflow is not None:
            queues["history"], functions["history"] = (self.overflow.queue,), {"drain": self.overflow.drain}
        return activity_sources(queues, functions)

    def _schedule(self) -> None:
        tasks: dict[str, Task] = {}
        for part in self.parts.values():
            tasks |= part.tasks(self.config)
        for name, task in tasks.items():
            self.schedules.invoke(name, task)
        schedule(self.jobs.values(), self.schedules, self.config)
        grant_schedules(self.schedules, tasks=tasks, jobs=self.jobs.values(), state=self.state)

    def _name_results(self, bridges: Sequence[str]) -> None:
        results = {
            "Capabilities": ",".join((*self.config.parts, *(["front"] if self.config.is_front else []))),
            "Region": Aws.REGION,
            # Read by the next deployment, which keeps them.
            "Settings": json.dumps(recorded(self.config), sort_keys=True),
            **self._history_results(),
        }
        if self.rendezvous is not None:
            results["BridgeFingerprints"] = ",".join(bridges)
        for part in self.parts.values():
            results |= part.outputs(self.state, self.config)
        for name, value in results.items():
            CfnOutput(self, name, value=value)

    def _history_results(self) -> dict[str, str]:
        if self.lake is None:
            return {}
        return {
            "HistoryBucket": self.lake.bucket.bucket_name,
            "HistoryStream": self.lake.stream.delivery_stream_name,
            "HistoryDatabase": self.lake.database_name,
            "HistoryTable": TABLE,
            "HistoryReaderArn": self.lake.reader_role.role_arn,
        }


def _doors(stack: StateStack, config: Config) -> Doors:
    doors = Doors(stack, "Doors", around=Surroundings(stack.state, None, program(stack, config), config))
    grant_doors(doors, state=stack.state, config=config)
    for name in doors.names:
        stack.export_value(name)
    return doors
