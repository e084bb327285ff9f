"""The commands and groups of `signalbox` by name: one group per capability, and one for the local stage."""

from signalbox.cli.shared.lazy_group import LazyCommand, group_of

COMMANDS = group_of(
    LazyCommand("bind", "signalbox.cli.exchange.bindings:bind", "Bind a queue, or another exchange, to an exchange."),
    LazyCommand(
        "unbind",
        "signalbox.cli.exchange.bindings:unbind",
        "Remove bindings; messages that are already in the queue stay.",
    ),
    LazyCommand(
        "bindings",
        "signalbox.cli.exchange.bindings:list_bindings",
        "List the bindings between resources that you may read.",
    ),
    LazyCommand(
        "publish",
        "signalbox.cli.exchange.publish:publish",
        "Publish a message, or one for each line, and print the ids of the published messages.",
    ),
    LazyCommand(
        "consume",
        "signalbox.cli.exchange.consume:consume",
        "Print messages of a queue as they arrive. Any number of consumers may share a queue.",
    ),
    LazyCommand(
        "status",
        "signalbox.cli.exchange.status:status",
        "Show exchanges and queues: state, backlog, age, rates, rejects and retries.",
    ),
    LazyCommand(
        "dead-letters",
        "signalbox.cli.exchange.dead_letters:dead_letters",
        "List the dead letters that you own, with reason and remedy; they stay where they are.",
    ),
    LazyCommand(
        "tail",
        "signalbox.cli.live.commands:tail",
        "Print the events of a topic: past events first, then each new event, without gaps.",
    ),
    LazyCommand("watch", "signalbox.cli.live.commands:watch", "Print the latest state of a record, then its changes."),
    LazyCommand(
        "sign-out",
        "signalbox.cli.live.commands:sign_out",
        "Revoke and forget the sign-ins that `--sign-in` has stored on this machine.",
    ),
    LazyCommand(
        "report",
        "signalbox.cli.history.commands:report",
        "Create a report of one or more days, print it, and save its text, picture and JSON.",
    ),
    LazyCommand(
        "replay",
        "signalbox.cli.history.replay:replay",
        "Replay messages at a limited rate, each at most once, with a mark; show their number and size first.",
    ),
    LazyCommand(
        "trace",
        "signalbox.cli.history.trace:trace",
        "Trace one message: its publisher, copies, retries, sessions, connections and last known place.",
    ),
    LazyCommand(
        "doctor",
        "signalbox.cli.doctor.commands:doctor",
        "Examine requirements that no deployment reports; change nothing; exit with 1 if a deployment would fail.",
    ),
    LazyCommand(
        "verify",
        "signalbox.cli.verify.commands:verify",
        "Run every capability of a stage end to end in a few minutes; exit with 0 only if all worked.",
    ),
    LazyCommand(
        "destroy",
        "signalbox.cli.destroy.command:destroy",
        "Remove a stage: its resources of run time, then its stack; its data stays unless --everything is given.",
    ),
    LazyCommand(
        "deploy",
        "signalbox.cli.deploy:deploy",
        "Deploy to the AWS account of your standard credentials; asks before it widens permissions.",
    ),
    LazyCommand(
        "local",
        "signalbox.cli.local:app",
        "Run a stage on this machine: an emulated AWS with the app deployed to it.",
    ),
    LazyCommand("rendezvous", "signalbox.cli.rendezvous.commands:app", "Connect Snowflake clients and proxies."),
    LazyCommand(
        "split",
        "signalbox.cli.splitting.commands:app",
        "Share a queue with the deployed consumer and with other users, without taking their messages.",
    ),
    LazyCommand("exchange", "signalbox.cli.exchange.commands:app", "Topic exchanges: declare, delete, list and match."),
    LazyCommand(
        "queue", "signalbox.cli.exchange.queues:app", "Queues that are bound to exchanges: declare, delete and list."
    ),
    LazyCommand(
        "user",
        "signalbox.cli.exchange.users:app",
        "Manage users; a user's rights follow from the user's name.",
    ),
    LazyCommand(
        "grant",
        "signalbox.cli.live.grants:app",
        "Manage rights to topics of live exchanges: grant, deny, list and explain.",
    ),
    LazyCommand(
        "group", "signalbox.cli.live.groups:app", "Change and list groups of users; grants name a group as @GROUP."
    ),
    LazyCommand("arvados", "signalbox.cli.live.bridge:app", "Arvados: publish the log rows of a cluster to a realm."),
    LazyCommand("history", "signalbox.cli.history.commands:app", "Query the event history with SQL."),
    LazyCommand("log", "signalbox.cli.history.log:app", "Export the logs of topics of live exchanges."),
    LazyCommand(
        "keep", "signalbox.cli.history.keep:app", "Keep messages that pass a split or an exchange for a set time."
    ),
)
