"""References to queues in values of users: a name, URL or ARN, with the account and region that it states."""

import re
from dataclasses import dataclass
from urllib.parse import unquote

from signalbox.queues import QueueName

ARN_PARTS = 6
ACCOUNT_DIGITS = 12
# Regional, FIPS, dual-stack and VPC endpoints, then the old ones; `queue.amazonaws.com` is that of us-east-1.
REGION_IN_HOST = re.compile(r"\bsqs(?:-fips)?\.([a-z]+(?:-[a-z]+)+-\d+)\.|//(?:([a-z0-9-]+)\.)?queue\.amazonaws\.com")
REGION_IN_PATH = re.compile(r"/queue/([a-z]+(?:-[a-z]+)+-\d+)/\d+/")  # LocalStack's form
# https://docs.aws.amazon.com/general/latest/gr/sqs-service.html, and the names of VPC endpoints.
HOST = (
    r"(?:[a-z0-9-]+\.)?(?:sqs(?:-fips)?\.[a-z0-9-]+(?:\.vpce)?|queue)\.amazonaws\.com(?:\.cn)?"
    r"|sqs\.[a-z0-9-]+\.api\.aws"
)
PLAIN_REFERENCE = re.compile(
    rf"(?:https://(?:{HOST})/\d{{12}}/|arn:aws[a-z-]*:sqs:[a-z0-9-]+:\d{{12}}:)?[A-Za-z0-9_-]{{1,80}}(?:\.fifo)?"
)
BETWEEN_WORDS = re.compile(r"""[\s"'`<>(){}\[\],;|&=]""")


@dataclass(frozen=True, slots=True)
class Home:
    """The account and region whose queues a stage splits."""

    account: str
    region: str

    @classmethod
    def of_arn(cls, arn: str) -> "Home":
        """Return the account and region in the ARN of a queue."""
        _, _, _, region, account, _ = arn.split(":")
        return cls(account, region)


@dataclass(frozen=True, slots=True)
class QueueReference:
    """A queue reference: a name, URL or ARN."""

    text: str

    @classmethod
    def inside(cls, text: str, start: int, end: int) -> "QueueReference":
        """Return the reference of a part of a text: what states the account and region of the part's queue name.

        It is a URL, an ARN, or their last parts alone; slashes may be escaped, as in JSON and in parameters of URLs.
        """
        part, word = cls(text[start:end]), unquote(BETWEEN_WORDS.split(text[:end])[-1].replace("\\/", "/"))
        if part.queue_name != part.text:
            return part
        forms = cls(word[max(word.rfind("arn:"), 0) :]), cls(f"sqs://queue/{word.replace(':', '/')}")
        return next((one for one in forms if one.queue_name == part.text), part)

    @property
    def is_plain(self) -> bool:
        """Return whether the text is a queue's name, URL or ARN and nothing else, such as the URL of another service.

        Local stages have other URLs, but names are enough.
        """
        return PLAIN_REFERENCE.fullmatch(self.text) is not None

    @property
    def queue_name(self) -> QueueName:
        """Return the queue's name."""
        return QueueName(self.text[self._start :])

    @property
    def account(self) -> str | None:
        """Return the stated account, or None."""
        if self._is_arn:
            return self.text.split(":")[4]
        account = self.text[: self._start].rstrip("/").rpartition("/")[2]
        return account if len(account) == ACCOUNT_DIGITS and account.isdecimal() else None

    @property
    def region(self) -> str | None:
        """Return the stated region, or None."""
        if self._is_arn:
            return self.text.split(":")[3]
        url = self.text[: self._start].lower()
        found = REGION_IN_HOST.search(url) or REGION_IN_PATH.search(url)
        return next(filter(None, found.groups()), "us-east-1") if found else None

    def to(self, name: QueueName) -> str:
        """Return a reference of the same form to another queue of the same account and region."""
        return self.text[: self._start] + name

    def difference(self, home: Home) -> str | None:
        """Return the description of a resource that is no queue of `home`, or None."""
        if self._is_arn and (service := self.text.split(":")[2]) != "sqs":
            return f"a resource of {service}"
        if self.account in (None, home.account) and self.region in (None, home.region):
            return None
        return f"a queue of account {self.account or 'unknown'} in region {self.region or 'unknown'}"

    @property
    def _is_arn(self) -> bool:
        return self.text.startswith("arn:") and self.text.count(":") >= ARN_PARTS - 1

    @property
    def _start(self) -> int:
        return self.text.rindex(":" if self._is_arn else "/") + 1 if self._is_arn or "://" in self.text else 0
