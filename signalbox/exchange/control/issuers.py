"""The field `issuers` of a `declare_exchange` command: the identity providers whose users may join."""

import re
from collections.abc import Iterator
from urllib.parse import urlsplit

from signalbox.documents import Section, shown
from signalbox.exchange.model.issuers import (
    DEFAULT_GROUPS_CLAIM,
    DEFAULT_NAME_CLAIM,
    DEFAULT_SKEW_SECONDS,
    LOOPBACK,
    Issuer,
)
from signalbox.sarracenia.rights.names import MAXIMUM_USER_LENGTH, USER_CHARACTERS

MAXIMUM_ISSUERS = 5
MAXIMUM_SKEW_SECONDS = 300
MAXIMUM_TEXT_LENGTH = 512
MAXIMUM_ORIGINS = 10
# Of DNS, or an IPv6 address: other characters have a meaning in the page's Content-Security-Policy.
HOST = re.compile(r"([a-z0-9._-]*|\[[0-9a-f:.]*\])(:[0-9]*)?", re.IGNORECASE)
NAMES = ("url", "audience", "label", "name_claim", "role_claim", "groups_claim", "skew_seconds", "client_id")
ISSUER_FIELDS = (*NAMES, "origins")


def read_issuers(section: Section) -> tuple[Issuer, ...] | None:
    """Read the issuers of a command; None if it has no such field."""
    if section.fields.get("issuers") is None:
        return None
    found = tuple(map(_issuer, section.sections("issuers")))
    if len(found) > MAXIMUM_ISSUERS:
        section.problem("issuers", f"expected {MAXIMUM_ISSUERS} at most, not {len(found)}")
    for name, values in (("url", [one.url for one in found]), ("label", [one.label for one in found])):
        for value in sorted({value for value in values if values.count(value) > 1}):
            section.problem("issuers", f"several have the {name} {shown(value)}: each needs its own")
    return found


def issuer_document(issuer: Issuer) -> dict[str, object]:
    """Return an issuer as the fields of the command."""
    return {name: getattr(issuer, name) for name in NAMES} | {"origins": list(issuer.origins)}


def _issuer(section: Section) -> Issuer:
    section.refuse_unknown(ISSUER_FIELDS)
    url = section.required_text("url")
    if url:
        check_url(section, "url", url)
    return Issuer(
        url=url,
        audience=_text(section, "audience", section.required_text("audience")),
        label=_label(section),
        name_claim=_text(section, "name_claim", section.text("name_claim")) or DEFAULT_NAME_CLAIM,
        role_claim=_text(section, "role_claim", section.text("role_claim")),
        groups_claim=_text(section, "groups_claim", section.text("groups_claim")) or DEFAULT_GROUPS_CLAIM,
        skew_seconds=_skew(section),
        client_id=_text(section, "client_id", section.text("client_id")),
        origins=_origins(section),
    )


def check_url(section: Section, field: str, url: str) -> None:
    """Add the problems of a URL, which is fetched: HTTPS, or plain HTTP on the machine itself."""
    for problem in _url_problems(url):
        section.problem(field, f"{problem}, in {shown(url)}")


def _url_problems(url: str) -> Iterator[str]:
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        yield f"is not a URL: {error}"
        return
    if not (parts.scheme == "https" or (parts.scheme == "http" and host in LOOPBACK)) or not host:
        yield "expected a URL that begins with https://; http:// is for loopback addresses only"
    if not url.isascii() or not url.isprintable() or " " in url or len(url) > MAXIMUM_TEXT_LENGTH:
        yield f"expected printable ASCII without spaces, {MAXIMUM_TEXT_LENGTH} characters at most"
    if "@" not in parts.netloc and not HOST.fullmatch(parts.netloc):
        yield "expected a host of letters, digits, '-' and '.'"
    if "?" in url or "#" in url or "@" in parts.netloc:
        yield "a query, a fragment and a user name are not allowed"


def _text(section: Section, field: str, text: str | None) -> str:
    if text is not None and (not text.isprintable() or len(text) > MAXIMUM_TEXT_LENGTH):
        section.problem(field, f"expected printable characters, {MAXIMUM_TEXT_LENGTH} at most, not {shown(text)}")
    return text or ""


def _label(section: Section) -> str:
    label = section.text("label") or ""
    if len(label) > MAXIMUM_USER_LENGTH or not USER_CHARACTERS.issuperset(label):
        section.problem("label", f"expected {MAXIMUM_USER_LENGTH} letters, digits and '-' at most, not {shown(label)}")
    return label


def _skew(section: Section) -> int:
    seconds = section.whole_number("skew_seconds")
    if seconds is not None and seconds > MAXIMUM_SKEW_SECONDS:
        section.problem("skew_seconds", f"expected 0 to {MAXIMUM_SKEW_SECONDS}, not {shown(seconds)}")
    return DEFAULT_SKEW_SECONDS if seconds is None else seconds


def _origins(section: Section) -> tuple[str, ...]:
    origins = section.texts("origins")
    if len(origins) > MAXIMUM_ORIGINS:
        section.problem("origins", f"expected {MAXIMUM_ORIGINS} at most, not {len(origins)}")
    for number, origin in enumerate(origins):
        check_url(section, f"origins[{number}]", origin)
        if origin.count("/") != len("//"):
            section.problem(f"origins[{number}]", f"expected one such as https://example.org, not {shown(origin)}")
    return origins
