"""The queues and functions whose metrics are the activity of a stage, by capability."""

import json
from collections.abc import Mapping

from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sqs as sqs

from stacks.exchange.construct import Exchange
from stacks.history.overflow import HistoryOverflow
from stacks.live.construct import Live
from stacks.rendezvous.construct import Rendezvous
from stacks.splitting.construct import Splitting


def activity_sources(
    rendezvous: Rendezvous, splitting: Splitting, *, exchange: Exchange, live: Live, overflow: HistoryOverflow
) -> str:
    """Return the names as JSON. `overview`, which gets them in a variable, cannot name itself."""
    queues: Mapping[str, tuple[sqs.IQueue, ...]] = {
        "rendezvous": (rendezvous.broker.queue,),
        "splitting": (splitting.control_queue,),
        "exchange": (exchange.control_queue, exchange.retries, exchange.ordered_retries),
        "live": (live.inbox, live.outbox, live.timers, live.overview_calls),
        "history": (overflow.queue,),
    }
    functions: Mapping[str, tuple[lambda_.IFunction, ...]] = {
        "rendezvous": tuple(rendezvous.functions[name] for name in ("offer", "poll", "answer", "client")),
        "splitting": tuple(splitting.functions.values()),
        "exchange": tuple(exchange.functions.values()),
        "live": tuple(live.functions[name] for name in ("connect", "session", "deliver")),
        "history": (overflow.drain,),
    }
    return json.dumps(
        {
            name: {
                "queues": [queue.queue_name for queue in queues[name]],
                "functions": [function.function_name for function in functions[name]],
            }
            for name in queues
        },
        separators=(",", ":"),
    )
