"""Findings of the doctor: a verdict on one requirement of a deployment, with the remedy."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from signalbox.errors import RejectedError, UnavailableError


class Judgement(StrEnum):
    """The verdict on a requirement; with `STOP` a deployment would fail, or its stage would not work."""

    OK = "ok"
    WARN = "warn"
    STOP = "stop"


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the doctor's report; `remedy` is empty when there is nothing to do."""

    check: str
    verdict: Judgement
    text: str
    remedy: str = ""


def ok(check: str, text: str) -> Finding:
    """Return the finding of a met requirement."""
    return Finding(check, Judgement.OK, text)


def warn(check: str, text: str, *, remedy: str) -> Finding:
    """Return the finding of a risk."""
    return Finding(check, Judgement.WARN, text, remedy)


def stop(check: str, text: str, *, remedy: str) -> Finding:
    """Return the finding of an obstacle."""
    return Finding(check, Judgement.STOP, text, remedy)


def unchecked(check: str, reason: str, *, remedy: str) -> Finding:
    """Return the finding of a requirement that could not be examined."""
    return Finding(check, Judgement.WARN, f"not checked: {reason}", remedy)


def has_stop(findings: Iterable[Finding]) -> bool:
    """Return whether a deployment must stop."""
    return any(finding.verdict is Judgement.STOP for finding in findings)


class CallDenied(RejectedError):
    """Raised when the credentials lack the permission `permission` for a call of the doctor."""

    def __init__(self, permission: str) -> None:
        super().__init__(f"these credentials lack the permission {permission}")
        self.permission = permission


class CallFailed(UnavailableError):
    """Raised when a call of the doctor fails for another reason; the text has AWS's code."""
