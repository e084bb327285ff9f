"""The commands and groups of `signalbox` by name: one group per capability, and one for the local stage."""

from signalbox.cli.shared.lazy_group import group_of

COMMANDS = group_of(
    ("bind", "exchange.bindings:bind", "Bind a queue, or another exchange, to an exchange."),
    ("unbind", "exchange.bindings:unbind", "Remove bindings; messages that are already in the queue stay."),
    ("bindings", "exchange.bindings:list_bindings", "List the bindings between resources that you may read."),
    (
        "publish",
        "exchange.publish:publish",
        "Publish a message, or one for each line, and print the ids of the published messages.",
    ),
    (
        "consume",
        "exchange.consume:consume",
        "Print messages of a queue as they arrive. Any number of consumers may share a queue.",
    ),
    ("status", "exchange.status:status", "Show exchanges and queues: state, backlog, age, rates, rejects and retries."),
    (
        "dead-letters",
        "exchange.dead_letters:dead_letters",
        "List the dead letters that you own, with reason and remedy; they stay where they are.",
    ),
    (
        "tail",
        "live.commands:tail",
        "Print the events of a topic: past events first, then each new event, without gaps.",
    ),
    ("watch", "live.commands:watch", "Print the latest state of a record, then its changes."),
    (
        "sign-out",
        "live.commands:sign_out",
        "Revoke and forget the sign-ins that `--sign-in` has stored on this machine.",
    ),
    (
        "report",
        "history.commands:report",
        "Create a report of one or more days, print it, and save its text, picture and JSON.",
    ),
    (
        "replay",
        "history.replay:replay",
        "Replay messages at a limited rate, each at most once, with a mark; show their number and size first.",
    ),
    (
        "trace",
        "history.trace:trace",
        "Trace one message: its publisher, copies, retries, sessions, connections and last known place.",
    ),
    (
        "doctor",
        "doctor.commands:doctor",
        "Examine requirements that no deployment reports; change nothing; exit with 1 if a deployment would fail.",
    ),
    (
        "verify",
        "verify.commands:verify",
        "Run every capability of a stage end to end in a few minutes; exit with 0 only if all worked.",
    ),
    (
        "destroy",
        "destroy.command:destroy",
        "Remove a stage: its resources of run time, then its stack; its data stays unless --everything is given.",
    ),
    (
        "deploy",
        "deploy:deploy",
        "Deploy to the AWS account of your standard credentials; asks before it widens permissions.",
    ),
    ("local", "local:app", "Run a stage on this machine: an emulated AWS with the app deployed to it."),
    ("rendezvous", "rendezvous.commands:app", "Connect Snowflake clients and proxies."),
    (
        "split",
        "splitting.commands:app",
        "Share a queue with the deployed consumer and with other users, without taking their messages.",
    ),
    ("exchange", "exchange.commands:app", "Topic exchanges: declare, delete, list and match."),
    ("queue", "exchange.queues:app", "Queues that are bound to exchanges: declare, delete and list."),
    ("user", "exchange.users:app", "Manage users; a user's rights follow from the user's name."),
    ("grant", "live.grants:app", "Manage rights to topics of live exchanges: grant, deny, list and explain."),
    ("group", "live.groups:app", "Change and list groups of users; grants name a group as @GROUP."),
    ("arvados", "live.bridge:app", "Arvados: publish the log rows of a cluster to a realm."),
    ("history", "history.commands:app", "Query the event history with SQL."),
    ("log", "history.log:app", "Export the logs of topics of live exchanges."),
    ("keep", "history.keep:app", "Keep messages that pass a split or an exchange for a set time."),
)
