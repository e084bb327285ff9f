"""`signalbox split`: share a queue with the deployed consumer and with other users."""

from signalbox.cli.shared.lazy_group import group_of
from signalbox.cli.shared.option_groups import CommandGroup

COMMANDS = group_of(
    ("start", "splitting.sessions:start"),
    ("run", "splitting.sessions:run", "shared.plain_help:PlainHelpCommand"),
    ("list", "splitting.status:list_sessions"),
    ("status", "splitting.status:status"),
    ("tail", "splitting.sessions:tail"),
    ("stop", "splitting.sessions:stop"),
    ("audit", "splitting.audit:audit"),
    ("policy", "splitting.audit:policy"),
    ("explain", "splitting.explain:explain"),
    ("registry", "splitting.registry:app"),
    ("kubernetes", "splitting.kubernetes:app"),
)

app = CommandGroup(
    "Share a queue with the deployed consumer and with other users, without taking their messages.", cls=COMMANDS
)
