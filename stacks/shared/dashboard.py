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
    """Return the rows of a capability."""
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
    """Return the widgets of rendezvous: outcomes of offers and polls, and latencies."""
    matches, denied = _event("AnswerDelivered"), _event("OfferDenied")
    return [
        _graph("Clients answered, denied, timed out", [matches, denied, _event("TimeoutExpired")]),
        _graph("Time to answer (ms)", _latencies("AnswerDelivered", of="rendezvous")),
        _graph(
            "What broke the protocol",
            [_event(name) for name in ("BadInputRejected", "OfferRejected")],
        ),
    ]


def _message_row() -> list[cloudwatch.IWidget]:
    """Return the widgets of splitting: destinations of messages, latencies and sessions."""
    routed, returned = (
        [_event(f"{kind}{outcome}", of="splitting") for outcome in outcomes]
        for kind, outcomes in (
            ("Routed", ("Session", "Deployed", "Copied")),
            ("Returned", ("Session", "Deployed", "Original")),
        )
    )
    latencies = [one for outcome in ("RoutedSession", "RoutedDeployed") for one in _latencies(outcome, of="splitting")]
    return [
        _graph("Split messages by who got them", routed),
        _graph("Time to share a message out (ms)", latencies),
        _graph("Messages that sessions left, dead messages", [*returned, _event("DeadLetterDead", of="splitting")]),
    ]


def _command_row(splitting: SplittingResources) -> list[cloudwatch.IWidget]:
    queue, dead = splitting.control_queue, splitting.dead_letters
    return [
        _graph("Commands about splits", [queue.metric_number_of_messages_sent()]),
        _graph("Sessions", [_event(f"Session{outcome}", of="splitting") for outcome in ("Started", "Ready", "Ended")]),
        _graph("Oldest command (s), dead letters of splitting", _waiting([queue], dead=[dead])),
    ]


def _routing_row() -> list[cloudwatch.IWidget]:
    """Return the widgets of the exchange: outcomes and latencies of publications, and changes of bindings."""
    event = partial(_event, of="exchange")
    changes = [event(f"{what}{kind}") for what in ("Declared", "Deleted") for kind in ("Exchange", "Queue", "Binding")]
    return [
        _graph(
            "Copies delivered, messages without a binding",
            [event(name) for name in ("RoutedDelivered", "UnroutedDropped", "UnroutedAlternate")],
        ),
        _graph("Time from publishing to the queue (ms)", _latencies("RoutedDelivered", of="exchange")),
        _graph("Exchanges, queues and bindings declared and deleted", changes),
    ]


def _retry_row(exchange: ExchangeResources) -> list[cloudwatch.IWidget]:
    commands, queues = exchange.control_queue, (exchange.retries, exchange.ordered_retries)
    return [
        _graph("Commands of administrators about exchanges", [commands.metric_number_of_messages_sent()]),
        _graph(
            "Copies tried again, dead", [_event(name, of="exchange") for name in ("RoutedRetried", "DeadLetterDead")]
        ),
        _graph(
            "Oldest command and delivery (s), dead letters of exchanges",
            _waiting((commands, *queues), dead=[exchange.dead_letters]),
        ),
    ]


def _connection_row(live: LiveResources) -> list[cloudwatch.IWidget]:
    """Return the widgets of live: sessions, deliveries and their latency."""
    event, stage = partial(_event, of="live"), live.websocket.stage
    return [
        # CDK's default is the average, which is 1 for any number of connections.
        _graph(
            "Connections begun, messages",
            [stage.metric(f"{of}Count", statistic="Sum") for of in ("Connect", "Message")],
        ),
        _graph(
            "Events posted, dropped, posts that failed",
            [event(name) for name in ("DeliveredPosted", "DeliveredDropped", "DeliveredFailed")],
        ),
        _graph("Time from publishing to posting (ms)", _latencies("DeliveredPosted", of="live")),
    ]


def _inbox_row(live: LiveResources) -> list[cloudwatch.IWidget]:
    event = partial(_event, of="live")
    return [
        _graph("Sessions begun and ended", [event(f"Session{outcome}") for outcome in ("Started", "Ended")]),
        _graph(
            "Subscriptions begun, ended, revoked",
            [event(f"Subscription{outcome}") for outcome in ("Subscribed", "Unsubscribed", "Revoked")],
        ),
        _graph(
            "Oldest frame, post, timer and call (s), dead letters of live",
            _waiting(live.queues, dead=[live.dead_letters]),
        ),
    ]


def _event(name: str, *, of: str = "rendezvous", statistic: str = "Sum") -> cloudwatch.Metric:
    return cloudwatch.Metric(
        namespace=METRICS_NAMESPACE, metric_name=name, dimensions_map={"service": of}, statistic=statistic
    )


def _latencies(name: str, *, of: str) -> list[cloudwatch.Metric]:
    return [_event(f"{name}Latency", of=of, statistic=statistic) for statistic in ("p50", "p95")]


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
