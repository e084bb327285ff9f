"""sr3's messages as an exchange carries them, written and read by sr3's own formats."""

import copy
import json
from collections.abc import Mapping, MutableMapping
from typing import Any

from sarracenia.postformat import PostFormat

from signalbox.clients.exchange.publisher import PublishRequest
from signalbox.errors import RejectedError
from signalbox.exchange.messages.properties import DeliveredMessage
from signalbox.sarracenia.formats import v02, v03
from signalbox.sarracenia.formats.payloads import Format, Payload
from signalbox.sarracenia.formats.topics import escaped, unescaped

Message = MutableMapping[str, Any]  # sr3's has more methods
CONTENT_TYPE = "content_type"  # AMQP's property; only a payload that sr3 would take for another has it with it
CONTENT_TYPES = {Format.V02: v02.CONTENT_TYPE, Format.V03: v03.CONTENT_TYPE}
# What only this process needs to know of a message; sr3 does not post it.
LOCAL = frozenset({"ack_id", "exchange", "local_offset", "subtopic", "subscription_index"})


class Unreadable(RejectedError):
    """Raised when sr3 cannot read or write a message in the format that it has, or is to have."""


def received(delivered: DeliveredMessage, options: Mapping[str, Any]) -> Any:  # noqa: ANN401 - sr3's class has no types
    """Return a message of a queue as sr3's. Raises `Unreadable`."""
    headers = dict(delivered.headers)
    content_type = headers.pop(CONTENT_TYPE, None) or _assumed_type(delivered.body)
    try:
        message = PostFormat.importAny(delivered.body, headers, content_type, options)
        message["exchange"] = delivered.exchange
        message.deriveSource(options)
        message.deriveTopics(options, unescaped(delivered.key))
        message["_deleteOnPost"] |= LOCAL
        is_valid = message.validate()
    except Exception as error:  # sr3's formats raise whatever their Python does
        raise Unreadable(f"message {delivered.message_id} is not {content_type} as sr3 reads it: {error!r}") from error
    if not is_valid:
        raise Unreadable(f"message {delivered.message_id} does not say when it was published, or where its file is")
    return message


def posted(message: Message, options: Mapping[str, Any]) -> PublishRequest:
    """Return what is published of a message of sr3. Raises `Unreadable` and `InvalidTopic`."""
    told = copy.copy(message)
    # sr3 is the one that says which format: of a message that it received it may be the same again.
    form = options["format"] if "format" in options else told["_format"]
    for name in told.pop("_deleteOnPost", ()):
        told.pop(name, None)
    body, headers, content_type = PostFormat.exportAny(told, form, options["topicPrefix"], options)
    if body is None:
        raise Unreadable(f"sr3 has no format {form!r}")
    topic = escaped(".".join(headers.pop("topic")))
    texts = {name: value if isinstance(value, str) else json.dumps(value) for name, value in headers.items()}
    if content_type != _assumed_type(body):
        texts[CONTENT_TYPE] = content_type
    return PublishRequest(topic, body, texts)


def _assumed_type(body: str) -> str:
    return CONTENT_TYPES[Payload(body, {}, None).format]
