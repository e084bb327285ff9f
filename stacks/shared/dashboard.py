"""The CloudWatch dashboard of a stage."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from stacks.exchange.construct import ExchangeResources
from stacks.history.job import HistoryJob
from stacks.history.lake import HistoryLake
from stacks.live.construct import LiveResources
from stacks.rendezvous.construct import RendezvousResources
from stacks.rendezvous.front import Front
from stacks.settings.config import Config
from stacks.shared.function import METRICS_NAMESPACE
from stacks.shared.part import Part
from stacks.splitting.construct import SplittingResources

PERIOD = Duration.minutes(5)
DOOR_METRICS = {
    "URL of proxies": ("UrlRequestCount", "UrlRequestLatency", "Url4xxCount", "Url5xxCount"),
    "API": ("Count", "Latency", "4xx", "5xx"),
}
WIDTH = 8


class Monitoring(Construct):
    """The dashboard: the alarms of the stage, then the metrics of each capability."""

    def __init__(
        self,
        scope: Construct,
        name: str,
        *,
        parts: Sequence[Part],
        lake: HistoryLake | None,
        jobs: Mapping[str, HistoryJob],
        config: Config,
    ) -> None:
        super().__init__(scope, name)
        alarms = [one for one in scope.node.find_all() if isinstance(one, cloudwatch.Alarm)]
        states = cloudwatch.AlarmStatusWidget(title="Alarms", alarms=alarms, width=24, height=4)
        cloudwatch.Dashboard(
            self,
            "Dashboard",
            dashboard_name=config.stage,
            widgets=[
                *([[states]] if config.alarms else ()),
                *(row for part in parts for row in _rows(part)),
                *([_history_row(lake, jobs)] if lake else ()),
            ],
        )


def _rows(part: Part) -> list[list[cloudwatch.IWidget]]:
    """Return the rows of a capability: the outcomes of its events and their latencies, its queues, its functions."""
    match part:
        case RendezvousResources():
            return [_client_row(), _queue_row(part), _function_row(part, of="rendezvous"), *_door_rows(part)]
        case Front():
            return [_queue_row(part)]
        case SplittingResources():
            return [_message_row(), _command_row(part), _function_row(part, of="splitting")]
        case ExchangeResources():
            return [_routing_row(), _retry_row(part), _function_row(part, of="exchange")]
        case LiveResources():
            return [_connection_row(part), _inbox_row(part), _function_row(part, of="live")]
        case _:
            raise TypeError(f"{part.node.path} has no rows")


def _client_row() -> list[cloudwatch.IWidget]:
    of = "rendezvous"
    return [
        _events("Clients answered, denied, timed out", "AnswerDelivered", "OfferDenied", "TimeoutExpired", of=of),
        _latencies("Time to answer (ms)", "AnswerDelivered", of=of),
        _events("What broke the protocol", "BadInputRejected", "OfferRejected", of=of),
    ]


def _message_row() -> list[cloudwatch.IWidget]:
    of, left = "splitting", ("ReturnedSession", "ReturnedDeployed", "ReturnedOriginal", "DeadLetterDead")
    return [
        _events("Split messages by who got them", "RoutedSession", "RoutedDeployed", "RoutedCopied", of=of),
        _latencies("Time to share a message out (ms)", "RoutedSession", "RoutedDeployed", of=of),
        _events("Messages that sessions left, dead messages", *left, of=of),
    ]


def _command_row(splitting: SplittingResources) -> list[cloudwatch.IWidget]:
    queue, dead = splitting.control_queue, splitting.dead_letters
    return [
        _graph("Commands about splits", [queue.metric_number_of_messages_sent()]),
        _events("Sessions", "SessionStarted", "SessionReady", "SessionEnded", of="splitting"),
        _graph("Oldest command (s), dead letters of splitting", _waiting([queue], dead=[dead])),
    ]


def _routing_row() -> list[cloudwatch.IWidget]:
    of, things = "exchange", ("Exchange", "Queue", "Binding")
    changes = [f"{change}{thing}" for change in ("Declared", "Deleted") for thing in things]
    outcomes = ("RoutedDelivered", "UnroutedDropped", "UnroutedAlternate")
    return [
        _events("Copies delivered, messages without a binding", *outcomes, of=of),
        _latencies("Time from publishing to the queue (ms)", "RoutedDelivered", of=of),
        _events("Exchanges, queues and bindings declared and deleted", *changes, of=of),
    ]


def _retry_row(exchange: ExchangeResources) -> list[cloudwatch.IWidget]:
    commands, queues = exchange.control_queue, (exchange.retries, exchange.ordered_retries)
    title = "Oldest command and delivery (s), dead letters of exchanges"
    return [
        _graph("Commands of administrators about exchanges", [commands.metric_number_of_messages_sent()]),
        _events("Copies tried again, dead", "RoutedRetried", "DeadLetterDead", of="exchange"),
        _graph(title, _waiting((commands, *queues), dead=[exchange.dead_letters])),
    ]


def _connection_row(live: LiveResources) -> list[cloudwatch.IWidget]:
    # CDK's default is the average, which is 1 for any number of connections.
    counts = [live.websocket.stage.metric(f"{of}Count", statistic="Sum") for of in ("Connect", "Message")]
    posts = ("DeliveredPosted", "DeliveredDropped", "DeliveredFailed")
    return [
        _graph("Connections begun, messages", counts),
        _events("Events posted, dropped, posts that failed", *posts, of="live"),
        _latencies("Time from publishing to posting (ms)", "DeliveredPosted", of="live"),
    ]


def _inbox_row(live: LiveResources) -> list[cloudwatch.IWidget]:
    changes = ("SubscriptionSubscribed", "SubscriptionUnsubscribed", "SubscriptionRevoked")
    title = "Oldest frame, post, timer and call (s), dead letters of live"
    return [
        _events("Sessions begun and ended", "SessionStarted", "SessionEnded", of="live"),
        _events("Subscriptions begun, ended, revoked", *changes, of="live"),
        _graph(title, _waiting(live.queues, dead=[live.dead_letters])),
    ]


def _events(title: str, *names: str, of: str) -> cloudwatch.IWidget:
    """Return the graph of the numbers of a capability's events."""
    return _graph(title, [_event(name, of=of, statistic="Sum") for name in names])


def _latencies(title: str, *names: str, of: str) -> cloudwatch.IWidget:
    """Return the graph of the latencies of a capability's events."""
    return _graph(title, [_event(f"{name}Latency", of=of, statistic=one) for name in names for one in ("p50", "p95")])


def _event(name: str, *, of: str, statistic: str) -> cloudwatch.Metric:
    return cloudwatch.Metric(
        namespace=METRICS_NAMESPACE, metric_name=name, dimensions_map={"service": of}, statistic=statistic
    )


def _waiting(queues: Iterable[sqs.IQueue], *, dead: Iterable[sqs.IQueue]) -> list[cloudwatch.Metric]:
    """Return the ages of the oldest messages of queues, and the numbers of dead letters."""
    return [
        *(queue.metric_approximate_age_of_oldest_message(statistic="Maximum") for queue in queues),
        *(queue.metric_approximate_number_of_messages_visible(statistic="Maximum") for queue in dead),
    ]


def _queue_row(rendezvous: RendezvousResources | Front) -> list[cloudwatch.IWidget]:
    queue, dead = rendezvous.broker.queue, rendezvous.broker.dead_letters
    return [
        _graph("Offers", [queue.metric_number_of_messages_sent(), queue.metric_number_of_messages_deleted()]),
        _graph("Parked offers", [queue.metric_approximate_number_of_messages_not_visible(statistic="Maximum")]),
        _graph("Oldest offer (s), dead offers", _waiting([queue], dead=[dead])),
    ]


def _function_row(part: Part, *, of: str) -> list[cloudwatch.IWidget]:
    functions = part.functions.items()
    return [
        _graph(f"Invocations of {of}", (f.metric_invocations(label=name) for name, f in functions)),
        _graph(f"Duration of {of} p95 (ms)", (f.metric_duration(label=name, statistic="p95") for name, f in functions)),
        _graph(
            f"Errors and throttles of {of}",
            [
                metric
                for name, f in functions
                for metric in (f.metric_errors(label=f"{name} errors"), f.metric_throttles(label=f"{name} throttles"))
            ],
        ),
    ]


def _door_rows(rendezvous: RendezvousResources) -> Iterator[list[cloudwatch.IWidget]]:
    """Yield a row for each open door: its requests, its latency and its errors."""
    for door, metric in _door_metrics(rendezvous):
        count, latency, *errors = (partial(metric, name) for name in DOOR_METRICS[door])
        yield [
            _graph(f"Requests by {door}", [count(statistic="Sum")]),
            _graph(f"Latency by {door} p95 (ms)", [latency(statistic="p95")]),
            _graph(f"4xx and 5xx by {door}", [one(statistic="Sum") for one in errors]),
        ]


def _door_metrics(rendezvous: RendezvousResources) -> Iterator[tuple[str, Callable[..., cloudwatch.Metric]]]:
    if rendezvous.has_url:
        yield "URL of proxies", rendezvous.doors.functions["proxies"].metric
    if rendezvous.api is not None:
        yield "API", rendezvous.api.stage.metric


def _history_row(lake: HistoryLake, jobs: Mapping[str, HistoryJob]) -> list[cloudwatch.IWidget]:
    return [
        _graph("History events", [lake.stream.metric_incoming_records()]),
        _graph("History age in S3 (s)", [lake.stream.metric("DeliveryToS3.DataFreshness", statistic="Maximum")]),
        _graph(
            "Jobs that failed",
            [job.unsuccessful_runs.with_(label=name) for name, job in jobs.items()],
        ),
    ]


def _graph(title: str, metrics: Iterable[cloudwatch.IMetric]) -> cloudwatch.IWidget:
    lines: Sequence[cloudwatch.IMetric] = list(metrics)
    return cloudwatch.GraphWidget(title=title, left=lines, period=PERIOD, width=WIDTH)
