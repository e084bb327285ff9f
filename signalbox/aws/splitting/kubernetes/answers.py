"""Answers of an API server: objects, and refusals as errors that say what was called and what to do about it."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from signalbox.aws.splitting.kubernetes.access import Remedies
from signalbox.aws.splitting.kubernetes.api import ClusterRefused, ClusterUnavailable, FieldConflict, ObjectChanged
from signalbox.errors import SignalboxError

# https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/status/ and apimachinery's meta/v1 types.
MANAGER_CONFLICT = "FieldManagerConflict"
MANAGER = re.compile(r'conflict with "((?:[^"\\]|\\.)*)"')
PATH = re.compile(
    r"/(?:api/[^/]+|apis/[^/]+/[^/]+)(?:/namespaces/(?P<namespace>[^/]+))?/(?P<resource>[^/]+)(?:/(?P<name>[^/]+))?"
)
ADMISSION = "admission webhook "
LONGEST_MESSAGE = 300


@dataclass(frozen=True, slots=True)
class ClusterCall:
    """A call of a cluster, for the texts of errors."""

    cluster: str
    verb: str
    path: str

    def __str__(self) -> str:
        return f"cluster {self.cluster!r}: {self.verb} {_resource(self.path)}"


def is_object(path: str) -> bool:
    """Return whether a path names an object, and not a list of them."""
    found = PATH.match(path)
    return found is not None and found["name"] is not None


def _resource(path: str) -> str:
    found = PATH.match(path)
    if found is None:
        return path
    name = f"/{found['name']}" if found["name"] else ""
    namespace = f" in namespace {found['namespace']}" if found["namespace"] else ""
    return f"{found['resource']}{name}{namespace}"


def answer(call: ClusterCall, status: int, body: bytes, remedies: Remedies) -> Mapping[str, Any]:
    """Return the object in an answer. Raises the error of a refusal."""
    if status >= HTTPStatus.MULTIPLE_CHOICES:
        raise refusal(call, status, _status(body), remedies)
    try:
        found = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise ClusterUnavailable(f"{call}: the answer {status} is not JSON: is this an API server?") from error
    if not isinstance(found, dict):
        raise ClusterUnavailable(f"{call}: the answer {status} is no object: is this an API server?")
    return found


def refusal(call: ClusterCall, status: int, found: Mapping[str, Any], remedies: Remedies) -> SignalboxError:
    """Return the error for a status of 300 or more; `found` is the answer's `Status`."""
    if status == HTTPStatus.CONFLICT:
        return _conflict(call, found)
    if status == HTTPStatus.TOO_MANY_REQUESTS or status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return ClusterUnavailable(f"{call}: {_said(status, found)}")
    if status == HTTPStatus.UNAUTHORIZED:
        return ClusterRefused(f"{call}: 401: the cluster does not accept the token: {remedies.unauthenticated}")
    if status == HTTPStatus.FORBIDDEN:
        remedy = "" if ADMISSION in _message(found) else f": {remedies.forbidden}"
        return ClusterRefused(f"{call}: {_said(status, found)}{remedy}")
    return ClusterRefused(f"{call}: {_said(status, found)}")


def _conflict(call: ClusterCall, found: Mapping[str, Any]) -> SignalboxError:
    causes = [cause for cause in _causes(found) if cause.get("reason") == MANAGER_CONFLICT]
    if not causes:
        return ObjectChanged(f"{call}: 409: the object has changed since it was read")
    matches = (MANAGER.search(str(cause.get("message"))) for cause in causes)
    managers = tuple(dict.fromkeys(match[1] for match in matches if match))
    fields = tuple(str(cause.get("field")) for cause in causes)
    text = f"{call}: {', '.join(fields)} belong to {', '.join(managers) or 'other field managers'}"
    return FieldConflict(text, managers=managers, fields=fields)


def _said(status: int, found: Mapping[str, Any]) -> str:
    """Return a status with its reason, without messages about invalid fields: they quote values of variables."""
    message = _message(found)
    if status in (HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND) or message.startswith(ADMISSION):
        detail = message[:LONGEST_MESSAGE]
    else:
        detail = ", ".join(str(cause.get("field")) for cause in _causes(found) if cause.get("field"))
    return " ".join(filter(None, (str(status), str(found.get("reason", "")), detail and f"({detail})")))


def _message(found: Mapping[str, Any]) -> str:
    return str(found.get("message", ""))


def _causes(found: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    details = found.get("details")
    causes = details.get("causes") if isinstance(details, dict) else None
    yield from causes or ()


def _status(body: bytes) -> Mapping[str, Any]:
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return {}  # of something in front of the API server
    return found if isinstance(found, dict) else {}
