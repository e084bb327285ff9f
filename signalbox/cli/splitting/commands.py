"""`signalbox split`: share a queue with the deployed consumer and with other users."""

from signalbox.cli.shared.lazy_group import LazyCommand, group_of
from signalbox.cli.shared.option_groups import CommandGroup

COMMANDS = group_of(
    LazyCommand(
        "start",
        "signalbox.cli.splitting.sessions:start",
        "Start a session, print the environment for its consumer, and keep it alive until interrupted.",
    ),
    LazyCommand(
        "run",
        "signalbox.cli.splitting.sessions:run",
        "Run a command or a Lambda handler in a session that starts and ends with it.",
        command_class="signalbox.cli.shared.plain_help:PlainHelpCommand",
    ),
    LazyCommand(
        "list", "signalbox.cli.splitting.status:list_sessions", "List sessions with owner, phase, age and backlog."
    ),
    LazyCommand(
        "status",
        "signalbox.cli.splitting.status:status",
        "Show splits with their stage, their queues, and the queues that each target reads.",
    ),
    LazyCommand(
        "tail",
        "signalbox.cli.splitting.sessions:tail",
        "Print matching messages as they arrive without taking them, by a session that receives copies.",
    ),
    LazyCommand(
        "stop",
        "signalbox.cli.splitting.sessions:stop",
        "End a session of any owner; the session's unconsumed messages are matched again.",
    ),
    LazyCommand(
        "audit",
        "signalbox.cli.splitting.audit:audit",
        "Show who received a message, when, and by which filter; the history lags by about a minute.",
    ),
    LazyCommand(
        "policy",
        "signalbox.cli.splitting.audit:policy",
        "Print the minimal IAM policy for splitting queues; needs no stage and always prints JSON.",
    ),
    LazyCommand(
        "explain",
        "signalbox.cli.splitting.explain:explain",
        "Show the recipient of each message, with the verdict of every session's filter.",
    ),
    LazyCommand(
        "registry",
        "signalbox.cli.splitting.registry:app",
        "Registries of the deployed consumers, in mirrord's format.",
    ),
    LazyCommand(
        "kubernetes", "signalbox.cli.splitting.kubernetes:app", "Kubernetes clusters whose workloads may be split."
    ),
)

app = CommandGroup(
    "Share a queue with the deployed consumer and with other users, without taking their messages.", cls=COMMANDS
)
