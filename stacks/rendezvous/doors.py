"""The doors of rendezvous: the functions of proxies and of clients over HTTP, with a URL for each."""

from collections.abc import Mapping

from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from stacks.rendezvous.environment import door_queues, environment
from stacks.shared.function import Function, Surroundings

DESCRIPTIONS = {
    "proxies": "Returns offers to polling proxies and delivers their answers",
    "clients": "Receives offers over HTTP and AMP, and serves the pages of the broker",
}
PROXY_TIMEOUT_SECONDS = 15
# Lambda refuses a request without both permissions, and charges nothing for it.
# https://docs.aws.amazon.com/lambda/latest/dg/urls-auth.html
PERMISSIONS: Mapping[str, Mapping[str, object]] = {
    "InvokeFunctionUrl": {"function_url_auth_type": "NONE"},
    "InvokeFunction": {"invoked_via_function_url": True},
}


class Doors(Construct):
    """Functions whose URLs volunteers have in their settings.

    On a stage they are in the state stack: a URL is lost with its function. `open_urls`, in the stack of the stage,
    lets strangers call them, so that they are closed when that stack is deleted.
    """

    def __init__(self, scope: Construct, name: str, *, around: Surroundings) -> None:
        super().__init__(scope, name)
        queues = door_queues(around.config)
        timeouts = {"proxies": PROXY_TIMEOUT_SECONDS, "clients": around.config.client_timeout_seconds}
        self.functions = {
            door: Function(
                self,
                door,
                capability="rendezvous",
                description=description,
                timeout_seconds=timeouts[door],
                environment=environment(door, around, queues=queues),
                around=around,
                serves_strangers=True,
                has_alarms=False,
            )
            for door, description in DESCRIPTIONS.items()
        }
        self.urls = {door: _url(self, door, function) for door, function in self.functions.items()}

    @property
    def names(self) -> list[str]:
        """The values that the stack of the stage imports."""
        functions = self.functions.values()
        return [*(name for one in functions for name in (one.function_arn, one.function_name)), *self.urls.values()]


def open_urls(scope: Construct, doors: Doors) -> None:
    """Let anyone call the URLs."""
    for door, function in doors.functions.items():
        for action, condition in PERMISSIONS.items():
            lambda_.CfnPermission(
                scope,
                f"{door.capitalize()}{action}",
                action=f"lambda:{action}",
                function_name=function.function_arn,
                principal="*",
                **condition,  # type: ignore[arg-type]  # of one property each
            )


def _url(scope: Construct, door: str, function: Function) -> str:
    made = lambda_.CfnUrl(scope, f"{door.capitalize()}Url", auth_type="NONE", target_function_arn=function.function_arn)
    return made.attr_function_url
