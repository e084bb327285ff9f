"""Results of botocore and Typer that are equal for every session, client and command line, and computed once.

Most tests of adapters, functions and commands create several clients or run a command. Creating them would take a
third of their time.
"""

from collections.abc import Callable
from functools import cache
from inspect import CO_VARKEYWORDS, getfullargspec
from types import FunctionType, MethodType
from typing import Any

import botocore.hooks
import botocore.session
import botocore.useragent
import typer.main
import typer.testing
from botocore.client import ClientCreator
from botocore.hooks import EventAliaser, NodeList, _PrefixTrie
from botocore.model import ServiceModel


def memoize() -> None:
    """Let this process compute each of the results once."""
    # Each boto3 session reads the service descriptions again, and moto has a session for each test.
    botocore.session.create_loader = cache(botocore.session.create_loader)
    ClientCreator._create_methods = methods_by_service(ClientCreator._create_methods)
    EventAliaser.__init__ = with_shared_names(EventAliaser.__init__)
    NodeList.__copy__ = copied
    _PrefixTrie._recursive_copy = copied_node
    botocore.hooks.accepts_kwargs = accepts_any_names
    named = botocore.useragent.sanitize_user_agent_string_component
    botocore.useragent.sanitize_user_agent_string_component = cache(named)
    typer.testing._get_command = cache(typer.main.get_command)


def methods_by_service(create: Callable[..., dict[str, Any]]) -> Callable[..., dict[str, Any]]:
    """Return a `_create_methods` that creates the methods of a service's clients once; they have no state."""
    known: dict[tuple[str, str], dict[str, Any]] = {}

    def methods(creator: ClientCreator, service: ServiceModel) -> dict[str, Any]:
        key = (service.service_name, service.api_version)
        if key not in known:
            known[key] = create(creator, service)
        return dict(known[key])  # event handlers add to it

    return methods


def with_shared_names(initialize: Callable[..., None]) -> Callable[..., None]:
    """Return an `__init__` of emitters that share the full names of events: all have the same aliases."""
    names: dict[str, str] = {}

    def initialize_with_names(aliaser: EventAliaser, emitter: object, event_aliases: object = None) -> None:
        initialize(aliaser, emitter, event_aliases)
        aliaser._alias_name_cache = names

    return initialize_with_names


def copied(handlers: NodeList) -> NodeList:
    """Return a copy of the lists of handlers, as NodeList's own method does, in a tenth of the time."""
    return NodeList(*map(list, handlers))


def copied_node(trie: _PrefixTrie, node: dict[str, Any]) -> dict[str, Any]:
    """Return a copy of a node of an emitter's trie, as its own method does, without `copy.copy`."""
    copies: dict[str, Any] = {}
    for key, value in node.items():
        if type(value) is NodeList:
            copies[key] = copied(value)
        else:
            copies[key] = copied_node(trie, value) if type(value) is dict else value
    return copies


def accepts_any_names(handler: Callable[..., Any]) -> bool:
    """Return whether an event handler takes any named arguments; botocore reads the whole signature for that."""
    function = handler.__func__ if isinstance(handler, MethodType) else handler
    if isinstance(function, FunctionType):
        return bool(function.__code__.co_flags & CO_VARKEYWORDS)
    return getfullargspec(handler)[2] is not None
