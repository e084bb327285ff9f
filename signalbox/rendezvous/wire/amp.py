"""The encodings for AMP caches: offers in URL paths and replies in web pages."""

import base64
import string

from signalbox.rendezvous.wire.gojson.scanner import InvalidMessage

CONTENT_TYPE = "text/html"
CACHE_CONTROL = "max-age=15"  # seconds; the shortest time for which an AMP cache keeps a page

VERSION = "0"  # of the path and of the armor

CHUNK_CHARACTERS = 32  # caches may shorten longer words
ELEMENT_CHARACTERS = 32 * 1024 - 1  # the client's decoder rejects an element of 32 KiB or more
_CHUNKS_PER_ELEMENT = ELEMENT_CHARACTERS // (CHUNK_CHARACTERS + 1)
_CHARACTERS_PER_ELEMENT = _CHUNKS_PER_ELEMENT * CHUNK_CHARACTERS
_ALPHABET = frozenset(string.ascii_letters + string.digits + "-_")

# The mandatory content of an AMP page, verbatim: https://amp.dev/boilerplate/
_HEAD = """<!doctype html>
<html amp>
<head>
<meta charset="utf-8">
<script async src="https://cdn.ampproject.org/v0.js"></script>
<link rel="canonical" href="#">
<meta name="viewport" content="width=device-width">
<style amp-boilerplate>body{-webkit-animation:-amp-start 8s steps(1,end) 0s 1 normal both;\
-moz-animation:-amp-start 8s steps(1,end) 0s 1 normal both;\
-ms-animation:-amp-start 8s steps(1,end) 0s 1 normal both;\
animation:-amp-start 8s steps(1,end) 0s 1 normal both}\
@-webkit-keyframes -amp-start{from{visibility:hidden}to{visibility:visible}}\
@-moz-keyframes -amp-start{from{visibility:hidden}to{visibility:visible}}\
@-ms-keyframes -amp-start{from{visibility:hidden}to{visibility:visible}}\
@-o-keyframes -amp-start{from{visibility:hidden}to{visibility:visible}}\
@keyframes -amp-start{from{visibility:hidden}to{visibility:visible}}</style>\
<noscript><style amp-boilerplate>body{-webkit-animation:none;-moz-animation:none;-ms-animation:none;animation:none}\
</style></noscript>
</head>
<body>
"""
_FOOT = "</body>\n</html>"


def decode_path(path: str) -> bytes:
    """Return the decoded last segment of the path after `/amp/client/`. Raises `InvalidMessage`.

    The text between the version and the last slash is ignored; it makes the URL unique, so that no cached page matches.
    """
    _, slash, encoded = path.rpartition("/")
    encoded = encoded.translate({ord("\r"): None, ord("\n"): None})  # as Go's decoder does
    if not slash or not path.startswith(VERSION) or not _is_base64(encoded):
        raise InvalidMessage("cannot decode URL path")
    return base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4))


def armor(reply: str) -> str:
    """Return an AMP page that contains a reply."""
    text = VERSION + base64.b64encode(reply.encode()).decode()
    return _HEAD + "".join(_element(part) for part in _parts(text, _CHARACTERS_PER_ELEMENT)) + _FOOT


def _is_base64(text: str) -> bool:
    return set(text) <= _ALPHABET and len(text) % 4 != 1


def _element(text: str) -> str:
    return "<pre>\n" + "".join(chunk + "\n" for chunk in _parts(text, CHUNK_CHARACTERS)) + "</pre>\n"


def _parts(text: str, size: int) -> list[str]:
    return [text[start : start + size] for start in range(0, len(text), size)]
