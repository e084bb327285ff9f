"""Requests of CloudFormation: what a CDK app declares is applied, changed and removed with the app's stack."""

import json
import logging
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any
from urllib.request import Request, urlopen

from lambdas.exchange import control_wiring
from lambdas.shared import instance
from lambdas.shared.commands import retried
from signalbox.errors import EffectRefused, RejectedError, UnavailableError
from signalbox.exchange.control.app_declaration import (
    AppExchange,
    AppExchanges,
    AppUsers,
    Execute,
    InvalidDeclaration,
    read_users,
)
from signalbox.sarracenia.rights.names import UserName
from signalbox.sarracenia.rights.permissions import Role

EXCHANGE, USERS = "Custom::SignalboxExchange", "Custom::SignalboxUsers"
DELETE = "Delete"
SUCCESS, FAILED = "SUCCESS", "FAILED"
REASON_CHARACTERS = 1_000  # a response has at most 4,096 bytes
RESPONSE_SECONDS = 5
PAUSE = timedelta(seconds=2)

logger = logging.getLogger(__name__)


def answer(event: Mapping[str, Any], execute: Execute, *, until: datetime) -> None:
    """Execute a request, and answer CloudFormation, which waits for the answer."""
    try:
        name = _repeated(lambda: _done(event, execute), until=until)
    except Exception as error:
        logger.exception("the request of CloudFormation failed")
        name = str(event.get("PhysicalResourceId") or event["RequestId"])
        _respond(event, name, FAILED, str(error)[:REASON_CHARACTERS] or type(error).__name__)
    else:
        _respond(event, name, SUCCESS, "")


def _repeated(work: Callable[[], str], *, until: datetime) -> str:
    """Repeat calls that AWS refuses until a time: IAM applies a permission of the same deployment seconds later."""
    while instance.CLOCK.now() + PAUSE <= until:
        try:
            return retried(work)
        except (EffectRefused, UnavailableError) as problem:
            logger.warning("the request of CloudFormation is tried again: %s", problem)
            instance.CLOCK.sleep(PAUSE.total_seconds())
    return retried(work)


def _done(event: Mapping[str, Any], execute: Execute) -> str:
    """Return the name of the resource: CloudFormation deletes the earlier one when it changes."""
    kind = event["ResourceType"]
    if kind == EXCHANGE:
        return _exchange(event, AppExchanges(control_wiring.ports(), execute))
    if kind == USERS:
        return _users(event, AppUsers(control_wiring.ports(), execute))
    raise RejectedError(f"unknown resource {kind!r}; known: {EXCHANGE}, {USERS}")


def _exchange(event: Mapping[str, Any], exchanges: AppExchanges) -> str:
    if event["RequestType"] == DELETE:
        declared = _exchange_of(event.get("ResourceProperties"))
        if declared is not None:
            exchanges.delete(declared)
        return str(event["PhysicalResourceId"])
    wanted = AppExchange.parse(_text(event["ResourceProperties"]), arn_prefix=control_wiring.queue_arn_prefix())
    exchanges.declare(wanted, before=_exchange_of(event.get("OldResourceProperties")))
    return wanted.name


def _users(event: Mapping[str, Any], users: AppUsers) -> str:
    if event["RequestType"] == DELETE:
        users.remove(_users_of(event.get("ResourceProperties")))
    else:
        users.put(read_users(_text(event["ResourceProperties"])), before=_users_of(event.get("OldResourceProperties")))
    return "users"


def _exchange_of(properties: Mapping[str, str] | None) -> AppExchange | None:
    """Return the exchange that was declared; nothing was made of an invalid declaration."""
    try:
        return AppExchange.parse(_text(properties or {}), arn_prefix=control_wiring.queue_arn_prefix())
    except InvalidDeclaration:
        return None


def _users_of(properties: Mapping[str, str] | None) -> Mapping[UserName, Role]:
    try:
        return read_users(_text(properties or {}))
    except InvalidDeclaration:
        return {}


def _text(properties: Mapping[str, str]) -> str:
    # As a text: CloudFormation turns all numbers and booleans of properties into texts.
    return properties.get("Declaration", "")


def _respond(event: Mapping[str, Any], name: str, status: str, reason: str) -> None:
    same = {field: event[field] for field in ("StackId", "RequestId", "LogicalResourceId")}
    body = json.dumps({**same, "PhysicalResourceId": name, "Status": status, "Reason": reason}).encode()
    # The signature of the URL covers an empty content type.
    request = Request(event["ResponseURL"], data=body, headers={"Content-Type": ""}, method="PUT")  # noqa: S310 - CloudFormation's
    with urlopen(request, timeout=RESPONSE_SECONDS):  # noqa: S310 - as above
        pass
