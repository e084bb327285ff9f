"""The construct of rendezvous: the broker queue, its functions, the open doors and the client's user."""

from aws_cdk import aws_iam as iam
from constructs import Construct

from stacks.rendezvous.broker import Broker
from stacks.rendezvous.doors import Doors, open_urls
from stacks.rendezvous.environment import environment
from stacks.settings.choices import OFFER_VISIBILITY_SECONDS
from stacks.settings.config import Config
from stacks.shared.function import Function, Surroundings, function_alarms
from stacks.shared.http_api import CALLS_PER_SECOND, PublicApi, RouteTarget
from stacks.shared.part import Part
from stacks.shared.schedules import Task, daily, every
from stacks.state_stack import State

# Of the requests a second of proxies that the API accepts: polls are more often than answers.
ANSWERS = 5
LONGEST_SWEEP_MINUTES = 4
DESCRIPTIONS = {
    "offer": "Parks, refuses and expires the offers of the broker queue",
    "sweep": "Deletes client queues whose lease has ended",
}


class RendezvousResources(Part):
    """The resources of rendezvous; their permissions are in `stacks/grants/rendezvous.py`."""

    def __init__(self, scope: Construct, name: str, *, doors: Doors, around: Surroundings) -> None:
        super().__init__(scope, name)
        state, config, self.doors = around.state, around.config, doors
        self.broker = Broker(self, key=state.key, config=config, visibility_seconds=OFFER_VISIBILITY_SECONDS)
        self.queues = (self.broker.queue,)
        self.functions = self._functions(around) | doors.functions
        self.functions["offer"].read(self.broker.queue, "Offers", concurrency=config.offer_concurrency)
        for door, function in doors.functions.items():
            function_alarms(Construct(self, door.capitalize()), function, config)
        self.api = self._api(state, config) if "api" in config.doors else None
        self.has_url = "url" in config.doors
        if self.has_url:
            open_urls(self, doors)
        self.client_user = iam.User(self, "ClientUser", user_name=f"{config.stage}-snowflake-client")

    @property
    def urls(self) -> dict[str, str]:
        """The URLs of proxies and of clients over HTTP, by the output of the stack."""
        of_api = {} if self.api is None else {"RendezvousApiUrl": self.api.stage.url}
        proxies, clients = self.doors.urls.values() if self.has_url else (*of_api.values(), *of_api.values())
        return {"RendezvousUrl": proxies, "RendezvousClientsUrl": clients, **of_api}

    def tasks(self, config: Config) -> dict[str, Task]:
        """Return the scheduled tasks by name."""
        sweep = self.functions["sweep"]
        return {
            "SweepLeases": Task(sweep, "leases", every(minutes=config.sweep_interval_minutes)),
            "SweepStrays": Task(sweep, "strays", daily(hour=3)),
        }

    def outputs(self, state: State, _config: Config) -> dict[str, str]:
        """Return the outputs of the stack by name."""
        return {
            **self.broker.outputs(),
            **self.urls,
            **({} if self.api is None else {"RendezvousApiId": self.api.api.api_id}),
            "RendezvousTable": state.rendezvous_table.table_name,
            "LeaseTable": state.lease_table.table_name,
            "ClientUserName": self.client_user.user_name,
            "SweepFunctionName": self.functions["sweep"].function_name,
        }

    def _functions(self, around: Surroundings) -> dict[str, Function]:
        queues = self.broker.variables()
        sweep_minutes = min(around.config.sweep_interval_minutes, LONGEST_SWEEP_MINUTES)
        timeouts = {"offer": around.config.offer_timeout_seconds, "sweep": sweep_minutes * 60}
        return {
            name: Function(
                self,
                name,
                capability="rendezvous",
                description=description,
                timeout_seconds=timeouts[name],
                environment=environment(name, around, queues=queues),
                around=around,
                serves_strangers=name == "offer",
            )
            for name, description in DESCRIPTIONS.items()
        }

    def _api(self, state: State, config: Config) -> PublicApi:
        proxies, clients = self.doors.functions["proxies"], self.doors.functions["clients"]
        answers = max(config.proxy_concurrency * CALLS_PER_SECOND // ANSWERS, 1)
        # An HTTP client waits for its answer, a second or more: as many a second as there may be at once.
        client = RouteTarget(clients, config.client_concurrency)
        # Upstream ignores the method, so every method is routed.
        routes = {
            "/proxy": RouteTarget(proxies, config.proxy_concurrency * CALLS_PER_SECOND - answers),
            "/answer": RouteTarget(proxies, answers),
            "/client": client,
            "/amp/{proxy+}": client,
        }
        return PublicApi(
            self,
            "Api",
            api_name=f"{config.stage}-rendezvous",
            routes=routes,
            default=client,
            key=state.key,
            config=config,
        )
