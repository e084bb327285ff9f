"""An existing Snowflake broker, to which offers are posted over HTTP."""

import logging
from dataclasses import dataclass
from http.client import HTTPException
from urllib.parse import urlsplit

from signalbox.aws.shared.bounded_http import OK, BoundedHttp
from signalbox.rendezvous.wire.gojson.scanner import InvalidMessage
from signalbox.rendezvous.wire.offer import MAXIMUM_BODY_BYTES
from signalbox.rendezvous.wire.reply import NO_PROXIES, TIMED_OUT, ClientReply, error_reply

# Upstream's broker answers within 5 s, and versions before 2.11 within 10 s (common/constants).
ANSWER_SECONDS = 11.0
LARGEST_REPLY_BYTES = 200_000

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class HttpBroker:
    """`UpstreamBroker` over its path `/client`; `url` is the broker's, with or without a path before it."""

    url: str
    timeout: float = ANSWER_SECONDS

    def reply(self, body: bytes) -> str:
        """Return the broker's reply to an offer, or an error text of upstream if it has none in time.

        Redirects are not followed. The log has the kind of failure, and nothing of the offer or the reply.
        """
        if len(body) > MAXIMUM_BODY_BYTES:
            return error_reply(f"{len(body)} bytes are too many; at most {MAXIMUM_BODY_BYTES} are allowed")
        try:
            status, reply = self._posted(body)
            if status != OK:
                logger.warning("the broker answered with status %s", status)
                return error_reply(NO_PROXIES)
            ClientReply.parse(reply)
            return reply.decode()
        except TimeoutError:
            logger.warning("the broker did not answer within %s s", self.timeout)
            return error_reply(TIMED_OUT)
        except (OSError, HTTPException, InvalidMessage, UnicodeDecodeError) as error:
            logger.warning("the broker gave no reply: %s", type(error).__name__)
            return error_reply(NO_PROXIES)

    def _posted(self, body: bytes) -> tuple[int, bytes]:
        parts = urlsplit(self.url)
        parts = parts._replace(path=f"{parts.path.rstrip('/')}/client", query="")
        return BoundedHttp(self.timeout, LARGEST_REPLY_BYTES).answer(parts, "POST", body)
