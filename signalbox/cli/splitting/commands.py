"""`signalbox split`: share a queue with the deployed consumer and with other users."""

from signalbox.cli.shared.lazy_group import group_of
from signalbox.cli.shared.option_groups import CommandGroup

COMMANDS = group_of(
    (
        "start",
        "splitting.sessions:start",
        "Start a session, print the environment for its consumer, and keep it alive until interrupted.",
    ),
    (
        "run",
        "splitting.sessions:run",
        "Run a command or a Lambda handler in a session that starts and ends with it.",
        "shared.plain_help:PlainHelpCommand",
    ),
    ("list", "splitting.status:list_sessions", "List sessions with owner, phase, age and backlog."),
    (
        "status",
        "splitting.status:status",
        "Show splits with their stage, their queues, and the queues that each target reads.",
    ),
    (
        "tail",
        "splitting.sessions:tail",
        "Print matching messages as they arrive without taking them, by a session that receives copies.",
    ),
    (
        "stop",
        "splitting.sessions:stop",
        "End a session of any owner; the session's unconsumed messages are matched again.",
    ),
    (
        "audit",
        "splitting.audit:audit",
        "Show who received a message, when, and by which filter; the history lags by about a minute.",
    ),
    (
        "policy",
        "splitting.audit:policy",
        "Print the minimal IAM policy for splitting queues; needs no stage and always prints JSON.",
    ),
    (
        "explain",
        "splitting.explain:explain",
        "Show the recipient of each message, with the verdict of every session's filter.",
    ),
    ("registry", "splitting.registry:app", "Registries of the deployed consumers, in mirrord's format."),
    ("kubernetes", "splitting.kubernetes:app", "Kubernetes clusters whose workloads may be split."),
)

app = CommandGroup(
    "Share a queue with the deployed consumer and with other users, without taking their messages.", cls=COMMANDS
)
