"""The construct of splitting: its control, reply and dead-letter queues and its two functions."""

from functools import partial

from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from stacks.history.lake import HistoryLake
from stacks.settings.config import Config
from stacks.shared.command_queue import TIMEOUT_SECONDS, VISIBILITY, add_command_mapping, command_queue, reply_queue
from stacks.shared.function import Function, Surroundings, stream
from stacks.shared.part import Part
from stacks.shared.queue import DeadLetterQueue, age_alarm
from stacks.shared.schedules import Task, daily, every
from stacks.splitting.environment import environment
from stacks.state_stack import AUDIT_PREFIX, State

# CPU scales with memory, and filters need nothing else; the sandbox of filters may use 64 MB.
MEMORY_MEGABYTES = 1024
DESCRIPTIONS = {
    "split": "Shares the messages of split queues out among the deployed consumer and sessions",
    "control": "Starts, watches and ends splits and their sessions",
}


def _history(lake: HistoryLake | None) -> dict[str, str]:
    if lake is None:
        return {}
    return {
        **stream(lake),
        "HISTORY_DATABASE": lake.database_name,
        "QUERY_RESULTS": f"s3://{lake.bucket.bucket_name}/{AUDIT_PREFIX}",
        "KEPT_BUCKET": lake.bucket.bucket_name,
    }


class SplittingResources(Part):
    """Lets several users consume a queue side by side; `stacks/grants/splitting.py` has the permissions."""

    def __init__(self, scope: Construct, name: str, *, around: Surroundings) -> None:
        super().__init__(scope, name)
        state, config = around.state, around.config
        self.dead_letters = DeadLetterQueue(
            self,
            "DeadLetters",
            key=state.key,
            config=config,
            holds="Messages or commands that can never be handled",
        )
        self.control_queue = command_queue(self, queue_name=config.control_queue, key=state.key)
        self.replies = reply_queue(self, queue_name=config.split_reply_queue, key=state.key)
        self.queues = (self.control_queue,)
        age_alarm(self, self.control_queue, oldest=VISIBILITY, config=config)
        resources = {
            "SPLIT_TABLE": state.split_table.table_name,
            **_history(around.lake),
            "CONTROL_QUEUE_URL": self.control_queue.queue_url,
            "SPLIT_DEAD_LETTER_QUEUE_URL": self.dead_letters.queue_url,
        }
        make = partial(
            Function,
            self,
            capability="splitting",
            around=around,
            memory_megabytes=MEMORY_MEGABYTES,
            # `control` continues its reconciles through its own queue, and ends a chain after 500 runs. A consumer may
            # send messages back to its split queue: whether that loop is allowed is the consumer's setting.
            recursive_loop=lambda_.RecursiveLoop.ALLOW,
        )
        split = make(
            "split",
            description=DESCRIPTIONS["split"],
            timeout_seconds=config.split_timeout_seconds,
            environment=environment("split", resources, config),
        )
        control = make(
            "control",
            description=DESCRIPTIONS["control"],
            timeout_seconds=TIMEOUT_SECONDS,
            environment=environment("control", {**resources, "SPLIT_FUNCTION_ARN": split.function_arn}, config),
        )
        self.functions = {"split": split, "control": control}
        self.user_policy = iam.ManagedPolicy(
            self, "UserPolicy", description="Starts and ends sessions of splits, and reads what they get"
        )
        # The forwarders of `split` are created at run time, with each split.
        add_command_mapping(self.functions["control"], self.control_queue)

    def tasks(self, _config: Config) -> dict[str, Task]:
        """Return the scheduled tasks by name."""
        control = self.functions["control"]
        return {
            "ReconcileSplits": Task(control, "reconcile", every(minutes=1)),
            "SweepSplits": Task(control, "strays", daily(hour=4)),
        }

    def outputs(self, state: State, config: Config) -> dict[str, str]:
        """Return the outputs of the stack by name."""
        return {
            "SplitControlQueueUrl": self.control_queue.queue_url,
            "SplitDeadLetterQueueUrl": self.dead_letters.queue_url,
            "SplitTable": state.split_table.table_name,
            "SplitFunctionName": self.functions["split"].function_name,
            "ControlFunctionName": self.functions["control"].function_name,
            "SplitReplyQueueUrl": self.replies.queue_url,
            "TemporaryQueuePrefix": config.temporary_queue_prefix,
            "SplitUserPolicyArn": self.user_policy.managed_policy_arn,
        }
