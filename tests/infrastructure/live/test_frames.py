"""API Gateway's mapping template, rendered in Velocity and posted to SQS, sends what the local stage's function sends.

The template has the variables of API Gateway's pages «WebSocket API mapping template reference» and «Variables for data
transformations».
"""

import json
from collections.abc import Callable, Iterator
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

import pytest

from lambdas.live import receive, wiring
from signalbox.errors import EffectFailed
from signalbox.live.session.inbox import parse
from signalbox.live.wamp.batches import AUTOBAHN_SEPARATOR, RECORD_SEPARATOR, batch, for_inbox
from tests.handlers.environment import clear_caches
from tests.infrastructure.live.test_live import routes
from tests.java.parts import Parts
from tests.java.velocity import Frame, rendered

pytestmark = pytest.mark.java
CONNECTION, REQUEST = "L0SM9cOFvHcCIhw=", "L0SM_GK-vHcFo4A="
# SQS accepts these: https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessage.html
ACCEPTED = "\t\n\r" + "".join(map(chr, (*range(0x20, 0xD800), *range(0xE000, 0xFFFE))))
LARGEST = 128 * 1024  # the largest message of a client, in bytes
PUBLISH = [16, 1, {"acknowledge": True}, "trial.a"]


def publication(*arguments: object, plain: bool = True) -> str:
    """Return a PUBLISH as clients write it: with characters as they are, or escaped."""
    return json.dumps([*PUBLISH, arguments], ensure_ascii=not plain, separators=(",", ":"))


TEXTS = {
    "hello of Autobahn": '[1,"xs_trial.fifo",{"authextra":{},"roles":{"subscriber":{"features":{}}},"authid":null}]',
    "quotes and backslashes": publication("it's \"quoted\" \\ and \\\\ \\' /"),
    "line breaks of an indented message": json.dumps([*PUBLISH, ["a\r\nb"]], indent=1).replace("\n", "\r\n"),
    "a batch": batch([publication("%18 \\u001e"), publication("\n\n".join("ab"))], RECORD_SEPARATOR),
    "a batch of Autobahn": batch([publication("é")], AUTOBAHN_SEPARATOR),
    "unicode": publication("é ß 中文 العربية 👩‍👩‍👧 𝄞 \u2028 \u00a0 \ufeff"),
    "escaped unicode": publication("é 中文 👩‍👩‍👧 \u0000", plain=False),
    "variables of Velocity": publication("$ $x ${x} $!{x} $input.body $context.connectionId $util.urlEncode('a') $$"),
    "directives of Velocity": publication("#set($a=1) #if(true)yes#end #[[raw]]# ## comment #* block *# #parse('x')"),
    "characters of forms": publication("a=b&MessageGroupId=other&Action=DeleteQueue;c+d%20e%%zz?#"),
    "text that is no JSON": "nonsense & = + % $ # \" '",
    "the first accepted characters": ACCEPTED[:30_000],
    "the last accepted characters": ACCEPTED[30_000:],
    "the largest message": publication("%é" * 43_000).ljust(LARGEST - 43_000),
}
IDS = [CONNECTION, "AbC+d/e9vHcCIhw=", "a&b=c%20d", "$context.requestId"]
PUBLICATION = Frame(CONNECTION, REQUEST, TEXTS["unicode"])
SAME_TEXT = Frame(CONNECTION, "a+b/c&d=", TEXTS["unicode"])
FRAMES = [
    *(Frame(CONNECTION, REQUEST, text) for text in TEXTS.values()),
    *(Frame(connection, REQUEST, '[6,{},"wamp.close.normal"]') for connection in IDS),
    SAME_TEXT,
]
REFUSED = Frame(CONNECTION, REQUEST, '["\uffff"]')


@pytest.fixture(scope="module")
def forms(stage, tmp_path_factory: pytest.TempPathFactory) -> dict[Frame, bytes]:
    """Return the form that the deployed template renders for each frame."""
    (template,) = routes(stage)["$default"]["RequestTemplates"].values()
    frames = [*FRAMES, REFUSED]
    texts = rendered(template, frames, folder=tmp_path_factory.mktemp("velocity"))
    return {frame: text.encode() for frame, text in zip(frames, texts, strict=True)}


class Inbox:
    """A queue that the template's forms and the stage's function send to."""

    def __init__(self, sqs: Any, endpoint: str) -> None:
        self.sqs = sqs
        self.url = sqs.create_queue(QueueName="inbox.fifo", Attributes={"FifoQueue": "true"})["QueueUrl"]
        self.address = endpoint + urlsplit(self.url).path

    def post(self, form: bytes) -> None:
        """Post a form as API Gateway does: without a version, to the path of the queue."""
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        with urlopen(Request(self.address, form, headers)) as response:  # noqa: S310 - on loopback
            assert response.status == 200

    def receive(self, frame: Frame) -> None:
        context = {"connectionId": frame.connection, "requestId": frame.request}
        assert receive.handler({"body": frame.text, "requestContext": context}, None) == {"statusCode": 200}

    def taken(self) -> list[tuple[str, str]]:
        """Take all messages; return their groups and bodies."""
        found = []
        while page := self._page():
            for message in page:
                found.append((message["Attributes"]["MessageGroupId"], message["Body"]))
                self.sqs.delete_message(QueueUrl=self.url, ReceiptHandle=message["ReceiptHandle"])
        return found

    def _page(self) -> list[Any]:
        page = self.sqs.receive_message(QueueUrl=self.url, MaxNumberOfMessages=10, AttributeNames=["All"])
        return list(page.get("Messages", []))


@pytest.fixture
def inbox(sqs, real_parts: Parts, monkeypatch: pytest.MonkeyPatch) -> Iterator[Inbox]:
    found = Inbox(sqs, real_parts.variables["AWS_ENDPOINT_URL_SQS"])
    monkeypatch.setenv("LIVE_INBOX_URL", found.url)
    clear_caches(wiring, receive)
    yield found
    clear_caches(wiring, receive)


@pytest.mark.parametrize("frame", FRAMES, ids=[*TEXTS, *IDS, "a request's id"])
def test_the_template_sends_what_the_stages_function_sends(inbox: Inbox, forms, frame: Frame) -> None:
    inbox.receive(frame)
    by_function = inbox.taken()
    inbox.post(forms[frame])

    assert inbox.taken() == by_function == [(frame.connection, "f" + for_inbox(frame.text))]


def test_a_message_is_parsed_as_the_frame_that_it_was(inbox: Inbox, forms) -> None:
    frame = FRAMES[list(TEXTS).index("the largest message")]
    inbox.post(forms[frame])

    ((_, body),) = inbox.taken()
    assert parse(body).size_bytes == LARGEST


@pytest.mark.parametrize("way", ["template", "function"])
def test_a_request_that_is_repeated_is_one_message_and_another_request_is_another(inbox, forms, way: str) -> None:
    send: Callable[[Frame], None] = inbox.receive if way == "function" else lambda frame: inbox.post(forms[frame])

    for frame in (PUBLICATION, PUBLICATION, SAME_TEXT):
        send(frame)

    assert inbox.taken() == [(CONNECTION, "f" + PUBLICATION.text)] * 2


def test_a_character_that_sqs_does_not_accept_is_refused_in_both_ways(inbox: Inbox, forms) -> None:
    with pytest.raises(HTTPError, match="400"):
        inbox.post(forms[REFUSED])
    with pytest.raises(EffectFailed, match="InvalidMessageContents"):
        inbox.receive(REFUSED)

    assert inbox.taken() == []
