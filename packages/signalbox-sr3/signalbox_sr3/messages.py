"""Conversion between sr3's messages and those of an exchange, by sr3's own formats."""

import copy
import json
from collections.abc import Mapping, MutableMapping
from typing import Any

from sarracenia.postformat import PostFormat

from signalbox.clients.exchange.publisher import PublishRequest
from signalbox.errors import RejectedError
from signalbox.exchange.messages.deliveries import DeliveredMessage
from signalbox.sarracenia.topics import escaped, unescaped

Message = MutableMapping[str, Any]  # sr3's class has more methods
CONTENT_TYPE = "content_type"  # AMQP's property; a header only of payloads whose format sr3 would misdetect
V02_TYPE, V03_TYPE = "text/plain", "application/json"
# Fields for this process only; sr3 does not post them.
LOCAL = frozenset({"ack_id", "exchange", "local_offset", "subtopic", "subscription_index"})


class UnreadableMessage(RejectedError):
    """Raised when sr3 cannot parse a message, or cannot write one in the configured format."""


def received(delivered: DeliveredMessage, options: Mapping[str, Any]) -> Any:  # noqa: ANN401 - sr3's class has no types
    """Convert a delivered message to sr3's. Raises `UnreadableMessage`."""
    headers = dict(delivered.headers)
    content_type = headers.pop(CONTENT_TYPE, None) or _assumed_type(delivered.body)
    try:
        message = PostFormat.importAny(delivered.body, headers, content_type, options)
        message["exchange"] = delivered.exchange
        message.deriveSource(options)
        message.deriveTopics(options, unescaped(delivered.key))
        message["_deleteOnPost"] |= LOCAL
        is_valid = message.validate()
    except Exception as error:  # sr3's formats raise arbitrary exceptions
        raise UnreadableMessage(
            f"sr3 cannot parse message {delivered.message_id} as {content_type}: {error!r}"
        ) from error
    if not is_valid:
        raise UnreadableMessage(f"message {delivered.message_id} has no time of publication or no location of its file")
    return message


def posted(message: Message, options: Mapping[str, Any]) -> PublishRequest:
    """Convert a message of sr3 to a publication. Raises `UnreadableMessage` and `InvalidTopic`."""
    exported = copy.copy(message)
    # Without the option `format`, a received message is posted in its original format.
    form = options["format"] if "format" in options else exported["_format"]
    for name in exported.pop("_deleteOnPost", ()):
        exported.pop(name, None)
    body, headers, content_type = PostFormat.exportAny(exported, form, options["topicPrefix"], options)
    if body is None:
        raise UnreadableMessage(f"sr3 has no format {form!r}")
    topic = escaped(".".join(headers.pop("topic")))
    texts = {name: value if isinstance(value, str) else json.dumps(value) for name, value in headers.items()}
    if content_type != _assumed_type(body):
        texts[CONTENT_TYPE] = content_type
    return PublishRequest(topic, body, texts)


def _assumed_type(body: str) -> str:
    # sr3 looks for the brace of v03 in the first five characters.
    return V03_TYPE if "{" in body[:5] else V02_TYPE
