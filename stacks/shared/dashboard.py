"""The CloudWatch dashboard of a stage."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from constructs import Construct

from stacks.exchange.construct import Exchange
from stacks.history.job import HistoryJob
from stacks.history.lake import HistoryLake
from stacks.history.overflow import HistoryOverflow
from stacks.live.construct import Live
from stacks.rendezvous.construct import Rendezvous
from stacks.settings.config import Config
from stacks.shared.function import Function
from stacks.shared.schedules import Schedules
from stacks.splitting.construct import Splitting

PERIOD = Duration.minutes(5)
WIDTH = 8


class Monitoring(Construct):
    """The dashboard: the alarms of all constructs, then the metrics of each capability."""

    def __init__(
        self,
        scope: Construct,
        name: str,
        *,
        rendezvous: Rendezvous,
        splitting: Splitting,
        exchange: Exchange,
        live: Live,
        lake: HistoryLake,
        overflow: HistoryOverflow,
        jobs: Mapping[str, HistoryJob],
        schedules: Schedules,
        config: Config,
    ) -> None:
        super().__init__(scope, name)
        self.alarms = [
            *_alarms(rendezvous, lake=lake, jobs=jobs.values(), schedules=schedules),
            *_splitting_alarms(splitting),
            *_exchange_alarms(exchange),
            *live.alarms,
            overflow.alarm,
            *overflow.drain.alarms,
            *(alarm for function in live.functions.values() for alarm in function.alarms),
        ]
        cloudwatch.Dashboard(
            self,
            "Dashboard",
            dashboard_name=config.stage,
            widgets=[
                [cloudwatch.AlarmStatusWidget(title="Alarms", alarms=self.alarms, width=24, height=4)],
                _client_row(),
                _queue_row(rendezvous),
                _function_row(rendezvous.functions),
                _http_row(rendezvous),
                _message_row(),
                _command_row(splitting),
                _function_row(splitting.functions, of="splitting"),
                _routing_row(),
                _retry_row(exchange),
                _function_row(exchange.functions, of="exchange"),
                _connection_row(live),
                _inbox_row(live),
                _function_row(live.functions, of="live"),
                _history_row(lake, jobs),
            ],
        )


def _alarms(
    rendezvous: Rendezvous, *, lake: HistoryLake, jobs: Iterable[HistoryJob], schedules: Schedules
) -> list[cloudwatch.IAlarm]:
    functions = (alarm for function in rendezvous.functions.values() for alarm in function.alarms)
    return [
        rendezvous.age_alarm,
        rendezvous.broker.dead_letters.alarm,
        rendezvous.api.alarm,
        *functions,
        *lake.alarms,
        *(job.alarm for job in jobs),
        schedules.dead_letters.alarm,
    ]


def _client_row() -> list[cloudwatch.IWidget]:
    """Return the widgets of rendezvous: outcomes of offers and polls, and latencies."""
    matches, denied = _event("AnswerDelivered"), _event("OfferDenied")
    return [
        _graph("Clients answered, denied, timed out", [matches, denied, _event("TimeoutExpired")]),
        _graph(
            "Time to answer (ms)",
            [_event("AnswerDeliveredLatency", statistic=statistic) for statistic in ("p50", "p95")],
        ),
        _graph(
            "Polls and what broke the protocol",
            [_event(name) for name in ("ProxyPollMatched", "ProxyPollIdle", "BadInputRejected", "OfferRejected")],
        ),
    ]


def _splitting_alarms(splitting: Splitting) -> list[cloudwatch.IAlarm]:
    functions = (alarm for function in splitting.functions.values() for alarm in function.alarms)
    return [splitting.age_alarm, splitting.dead_letters.alarm, *functions]


def _message_row() -> list[cloudwatch.IWidget]:
    """Return the widgets of splitting: destinations of messages, latencies and sessions."""
    routed, returned = (
        [_event(f"{kind}{outcome}", of="splitting") for outcome in outcomes]
        for kind, outcomes in (
            ("Routed", ("Session", "Deployed", "Copied")),
            ("Returned", ("Session", "Deployed", "Original")),
        )
    )
    latencies = [
        _event(f"Routed{outcome}Latency", of="splitting", statistic=statistic)
        for outcome in ("Session", "Deployed")
        for statistic in ("p50", "p95")
    ]
    return [
        _graph("Split messages by who got them", routed),
        _graph("Time to share a message out (ms)", latencies),
        _graph("Messages that sessions left, dead messages", [*returned, _event("DeadLetterDead", of="splitting")]),
    ]


def _command_row(splitting: Splitting) -> list[cloudwatch.IWidget]:
    queue, dead = splitting.control_queue, splitting.dead_letters
    return [
        _graph("Commands about splits", [queue.metric_number_of_messages_sent()]),
        _graph("Sessions", [_event(f"Session{outcome}", of="splitting") for outcome in ("Started", "Ready", "Ended")]),
        _graph(
            "Oldest command (s), dead letters of splitting",
            [
                queue.metric_approximate_age_of_oldest_message(statistic="Maximum"),
                dead.metric_approximate_number_of_messages_visible(statistic="Maximum"),
            ],
        ),
    ]


def _exchange_alarms(exchange: Exchange) -> list[cloudwatch.IAlarm]:
    return [*exchange.alarms, *(alarm for function in exchange.functions.values() for alarm in function.alarms)]


def _routing_row() -> list[cloudwatch.IWidget]:
    """Return the widgets of the exchange: outcomes and latencies of publications, and changes of bindings."""
    event = partial(_event, of="exchange")
    changes = [event(f"{what}{kind}") for what in ("Declared", "Deleted") for kind in ("Exchange", "Queue", "Binding")]
    return [
        _graph(
            "Copies delivered, messages without a binding",
            [event(name) for name in ("RoutedDelivered", "UnroutedDropped", "UnroutedAlternate")],
        ),
        _graph(
            "Time from publishing to the queue (ms)",
            [event("RoutedDeliveredLatency", statistic=statistic) for statistic in ("p50", "p95")],
        ),
        _graph("Exchanges, queues and bindings declared and deleted", changes),
    ]


def _retry_row(exchange: Exchange) -> list[cloudwatch.IWidget]:
    commands, queues = exchange.control_queue, (exchange.retries, exchange.ordered_retries)
    return [
        _graph("Commands of administrators about exchanges", [commands.metric_number_of_messages_sent()]),
        _graph(
            "Copies tried again, dead", [_event(name, of="exchange") for name in ("RoutedRetried", "DeadLetterDead")]
        ),
        _graph(
            "Oldest command and delivery (s), dead letters of exchanges",
            [
                *(queue.metric_approximate_age_of_oldest_message(statistic="Maximum") for queue in (commands, *queues)),
                exchange.dead_letters.metric_approximate_number_of_messages_visible(statistic="Maximum"),
            ],
        ),
    ]


def _connection_row(live: Live) -> list[cloudwatch.IWidget]:
    """Return the widgets of live: sessions, deliveries and their latency."""
    event, stage = partial(_event, of="live"), live.websocket.stage
    return [
        _graph("Connections begun, messages", [stage.metric("ConnectCount"), stage.metric("MessageCount")]),
        _graph(
            "Events posted, dropped, posts that failed",
            [event(name) for name in ("DeliveredPosted", "DeliveredDropped", "DeliveredFailed")],
        ),
        _graph(
            "Time from publishing to posting (ms)",
            [event("DeliveredPostedLatency", statistic=statistic) for statistic in ("p50", "p95")],
        ),
    ]


def _inbox_row(live: Live) -> list[cloudwatch.IWidget]:
    event, queues = partial(_event, of="live"), (live.inbox, live.outbox, live.timers, live.overview_calls)
    return [
        _graph("Sessions begun and ended", [event(f"Session{outcome}") for outcome in ("Started", "Ended")]),
        _graph(
            "Subscriptions begun, ended, revoked",
            [event(f"Subscription{outcome}") for outcome in ("Subscribed", "Unsubscribed", "Revoked")],
        ),
        _graph(
            "Oldest frame, post, timer and call (s), dead letters of live",
            [
                *(queue.metric_approximate_age_of_oldest_message(statistic="Maximum") for queue in queues),
                *(
                    dead.metric_approximate_number_of_messages_visible(statistic="Maximum")
                    for dead in (live.dead_letters, live.ordered_dead_letters)
                ),
            ],
        ),
    ]


def _event(name: str, *, of: str = "rendezvous", statistic: str = "Sum") -> cloudwatch.Metric:
    return cloudwatch.Metric(
        namespace="Signalbox", metric_name=name, dimensions_map={"service": of}, statistic=statistic
    )


def _queue_row(rendezvous: Rendezvous) -> list[cloudwatch.IWidget]:
    queue, dead = rendezvous.broker.queue, rendezvous.broker.dead_letters
    return [
        _graph("Offers", [queue.metric_number_of_messages_sent(), queue.metric_number_of_messages_deleted()]),
        _graph("Parked offers", [queue.metric_approximate_number_of_messages_not_visible(statistic="Maximum")]),
        _graph(
            "Oldest offer (s), dead offers",
            [
                queue.metric_approximate_age_of_oldest_message(statistic="Maximum"),
                dead.metric_approximate_number_of_messages_visible(statistic="Maximum"),
            ],
        ),
    ]


def _function_row(of_capability: Mapping[str, Function], *, of: str = "rendezvous") -> list[cloudwatch.IWidget]:
    functions = of_capability.items()
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


def _http_row(rendezvous: Rendezvous) -> list[cloudwatch.IWidget]:
    stage = rendezvous.api.stage
    return [
        _graph("HTTP requests", [stage.metric_count(statistic="Sum")]),
        _graph("HTTP latency p95 (ms)", [stage.metric_latency(statistic="p95")]),
        _graph(
            "HTTP 4xx and 5xx", [stage.metric_client_error(statistic="Sum"), stage.metric_server_error(statistic="Sum")]
        ),
    ]


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
