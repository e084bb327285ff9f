"""JSON forms of the values that several stored items and messages of live contain."""

from datetime import datetime

from signalbox.forms import Document, Form, Forms
from signalbox.live.wamp.audience import Audience, Listener
from signalbox.live.wamp.messages import Payload
from signalbox.live.wamp.options import HISTORY_PARSERS, BackfillStart, history_option
from signalbox.live.wamp.patterns import TopicPattern


def _backfill_start(document: Document) -> BackfillStart | None:
    ((name, value),) = document.items()
    return HISTORY_PARSERS[name](value)


FORMS = Forms(
    {
        datetime: Form(datetime.isoformat, datetime.fromisoformat),
        # As SUBSCRIBE's option `_history`.
        BackfillStart: Form(history_option, _backfill_start),
    }
)
# A stored pattern is not validated again: its URI was valid when the client subscribed.
PATTERN = FORMS.record(TopicPattern)
LISTENER = FORMS.row(Listener)
# An absent list is left out, an empty list is not.
AUDIENCE = FORMS.record(
    Audience,
    sparse=[
        "eligible",
        "eligible_authid",
        "eligible_authrole",
        "exclude",
        "exclude_authid",
        "exclude_authrole",
        "excluded_publisher",
    ],
)
PAYLOAD = FORMS.record(Payload, names={"arguments": "args", "keywords": "kwargs"}, sparse=["arguments", "keywords"])
