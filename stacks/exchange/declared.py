"""An app's declarations as resources: `control` applies them when CloudFormation creates, changes or deletes these."""

from collections.abc import Mapping

from aws_cdk import CfnResource, Stack
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from stacks.exchange.construct import ExchangeResources
from stacks.grants.permissions import allow, allow_key
from stacks.settings.config import Config

# Longer than `control` runs; CloudFormation's own default is an hour.
SERVICE_TIMEOUT_SECONDS = 60


class DeclaredExchange:
    """An exchange, with the bindings of existing queues."""

    def __init__(self, scope: Construct, *, part: ExchangeResources, name: str, config: Config) -> None:
        self._part = part
        self._bindings: list[dict[str, str | None]] = []
        self._declaration: dict[str, object] = {
            "exchange": name,
            "live": None,
            "bindings": self._bindings,
            "keeps": config.keeps_state,
        }
        self._resource = _resource(scope, "Declared", kind="Custom::SignalboxExchange", part=part)
        _set(self._resource, self._declaration)

    def bind(self, queue: sqs.IQueue, pattern: str) -> None:
        """Bind a queue, and let the router send messages there."""
        route, control, key = (
            self._part.functions["route"],
            self._part.functions["control"],
            queue.encryption_master_key,
        )
        if all(one["queue"] != queue.queue_arn for one in self._bindings):
            allow(route, ["sqs:SendMessage"], [queue.queue_arn])
            allow(control, ["sqs:GetQueueAttributes"], [queue.queue_arn])
            if key is not None:
                allow_key(route, key, service="sqs")
        arn = None if key is None else key.key_arn
        self._bindings.append({"queue": queue.queue_arn, "pattern": pattern, "key": arn})
        _set(self._resource, self._declaration)

    def require_live_possible(self) -> None:
        """Raise `ValueError` for an exchange without order, and for one that is live."""
        if not str(self._declaration["exchange"]).endswith(".fifo"):
            raise ValueError("only ordered exchanges can be live: Exchange(…, ordered=True)")
        if self._declaration["live"] is not None:
            raise ValueError("the exchange has a Live already: make another Exchange for another one")

    def make_live(self, settings: Mapping[str, object]) -> None:
        """Let connections join the exchange."""
        self._declaration["live"] = {"live": True, **settings}
        _set(self._resource, self._declaration)

    def follow(self, users: "DeclaredUsers") -> None:
        """Declare the exchange after `users`: anonymous connections may join it as one of them."""
        self._resource.node.add_dependency(users.resource)


class DeclaredUsers:
    """Users that only join realms."""

    def __init__(self, scope: Construct, *, part: ExchangeResources) -> None:
        self._scope, self._part = scope, part
        self._roles: dict[str, str] = {}
        self.resource: CfnResource

    def add(self, name: str, role: str) -> None:
        """Add a user."""
        if not self._roles:
            self.resource = _resource(self._scope, "Users", kind="Custom::SignalboxUsers", part=self._part)
        self._roles[name] = role
        _set(self.resource, self._roles)


def _resource(scope: Construct, name: str, *, kind: str, part: ExchangeResources) -> CfnResource:
    control = part.functions["control"]
    properties = {"ServiceToken": control.function_arn, "ServiceTimeout": str(SERVICE_TIMEOUT_SECONDS)}
    made = CfnResource(scope, name, type=kind, properties=properties)
    # With all permissions of its functions.
    made.node.add_dependency(part)
    return made


def _set(resource: CfnResource, declaration: Mapping[str, object]) -> None:
    resource.add_property_override("Declaration", Stack.of(resource).to_json_string(declaration))
