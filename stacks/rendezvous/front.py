"""The construct of a front of an existing broker: the broker queue, one function and the client's user."""

from aws_cdk import aws_iam as iam
from constructs import Construct

from stacks.rendezvous.broker import Broker
from stacks.rendezvous.environment import environment
from stacks.settings.choices import FRONT_VISIBILITY_SECONDS
from stacks.settings.config import Config
from stacks.shared.function import Function, Surroundings
from stacks.shared.part import Part
from stacks.shared.schedules import Task, every
from stacks.state_stack import State

# The function waits for the broker nearly all of its time: more memory raises the price and does not shorten it.
MEMORY_MEGABYTES = 128
# A burst of offers may leave the queues of thousands of clients, and a run deletes hundreds.
SWEPT_EVERY_MINUTES = 5


class Front(Part):
    """Posts offers to an existing broker; the permissions are in `stacks/grants/rendezvous.py`."""

    def __init__(self, scope: Construct, name: str, *, around: Surroundings) -> None:
        super().__init__(scope, name)
        state, config = around.state, around.config
        self.broker = Broker(self, key=state.key, config=config, visibility_seconds=FRONT_VISIBILITY_SECONDS)
        self.queues = (self.broker.queue,)
        forward = Function(
            self,
            "forward",
            capability="rendezvous",
            description="Posts offers to the existing broker, and its replies to the queues of clients",
            timeout_seconds=FRONT_VISIBILITY_SECONDS,
            environment=environment("forward", around, queues=self.broker.variables()),
            around=around,
            memory_megabytes=MEMORY_MEGABYTES,
            serves_strangers=True,
        )
        forward.read(self.broker.queue, "Offers", concurrency=config.offer_concurrency)
        self.functions = {"forward": forward}
        self.client_user = iam.User(self, "ClientUser", user_name=f"{config.stage}-snowflake-client")

    def tasks(self, _config: Config) -> dict[str, Task]:
        """Return the scheduled tasks by name."""
        return {"SweepStrays": Task(self.functions["forward"], "strays", every(minutes=SWEPT_EVERY_MINUTES))}

    def outputs(self, _state: State, _config: Config) -> dict[str, str]:
        """Return the outputs of the stack by name."""
        return {**self.broker.outputs(), "ClientUserName": self.client_user.user_name}
