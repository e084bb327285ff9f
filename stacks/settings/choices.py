"""Every deployment setting: its name, type, default, unit, limits and meaning, in one place."""

from dataclasses import dataclass
from pathlib import Path

from stacks.settings.clusters import KubernetesClusters
from stacks.settings.setting import listed, number, setting

# CloudWatch Logs keeps logs for one of these numbers of days and for no other.
LOG_RETENTION_DAYS = (
    *(1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180),
    *(365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288, 3653),
)
# So that the runs of each day are at the same hours.
PARTS_OF_A_DAY = (1, 2, 3, 4, 6, 8, 12, 24)
# An HTTP API ends an integration after 30 s; a function that ends first still gets to say why.
LONGEST_HTTP_TIMEOUT_SECONDS = 29
# The time of a request in addition to its deliberate wait: a cold start and the slowest call with its retries.
WORKING_SECONDS = 10
# AWS advises six, so that Lambda can try throttled batches again; docs/decisions/0040-visibility.md has the reasons.
VISIBILITY_PER_TIMEOUT = 3
# The visibility time-out of the broker queue, and the time-out of the function `offer`, which Lambda does not allow to
# be longer (CreateEventSourceMapping: "Queue visibility timeout: … is less than Function timeout: …"). An offer whose
# function was killed is delivered again after this time: a real client gives up without a queue after five seconds.
OFFER_VISIBILITY_SECONDS = 3
# The same of a front: a broker that answers late takes eleven seconds, and the queue is created and sent to.
FRONT_VISIBILITY_SECONDS = 20
# Of a name's 80 characters, `xs_`, the longest user's name, a hash and the ending of a dead-letter queue need 58.
EXCHANGE_PREFIX = r"[A-Za-z0-9_-]{0,20}"
DOORS = ("url", "api")
CAPABILITIES = ("rendezvous", "splitting", "exchange", "live", "history")
QUEUES = r"[A-Za-z0-9_-]{1,75}(?:\*|\*?\.fifo)?"


@dataclass(frozen=True, slots=True)
class Choices:
    """The settings that a deployment can choose."""

    stage: str = setting(
        "signalbox",
        "Name of the deployment: the stacks are `<stage>-state` and `<stage>`.",
        pattern=r"[a-z](?:[a-z0-9-]{0,28}[a-z0-9])?",
        form="1 to 30 lower-case letters, digits and '-', a letter first and no '-' last",
    )
    region: str | None = setting(
        None, "AWS region to deploy to; default: the region of the credentials.", pattern=r"[a-z]{2}(?:-[a-z]+)+-\d"
    )
    local: bool = setting(
        default=False,
        description="Deploy to the local emulator: plain credentials, packages for this machine, destroyable state.",
    )
    capabilities: str = setting(
        ",".join(CAPABILITIES),
        "Capabilities, separated by commas; live includes exchange. Without history, no events are recorded.",
        choices=CAPABILITIES,
    )
    kept_capabilities: str | None = setting(
        None,
        "Capabilities whose tables and bucket stay in the state stack without the capability. `signalbox "
        "deploy` and `signalbox local up` set it when they take one away.",
        choices=CAPABILITIES,
    )
    broker_url: str | None = setting(
        None,
        "URL of an existing Snowflake broker. Rendezvous is then a [front](front.md) of it: offers over SQS are posted "
        "to its `/client`, and proxies stay with it.",
        pattern=r"https?://[A-Za-z0-9.-]{1,253}(?::\d{1,5})?(?:/[A-Za-z0-9._~/-]{0,200})?",
    )
    broker_queue_name: str = setting(
        "snowflake-broker", "Queue to which clients send their offers.", pattern=r"[A-Za-z0-9_-]{1,80}"
    )
    broker_queue_arn: str | None = setting(
        None,
        "ARN of an existing queue to use in place of the stage's own; its visibility time-out must be "
        f"{OFFER_VISIBILITY_SECONDS} s, with `broker_url` at least {FRONT_VISIBILITY_SECONDS} s.",
        pattern=r"arn:aws:sqs:[a-z0-9-]+:\d{12}:[A-Za-z0-9_-]{1,80}",
    )
    broker_queue_key_arn: str | None = setting(
        None,
        "ARN of the KMS key of the queue named by `broker_queue_arn`, if it has one.",
        pattern=r"arn:aws:kms:[a-z0-9-]+:\d{12}:key/[A-Za-z0-9-]+",
    )
    broker_queue_retention_seconds: int = number(
        300, (60, 1_209_600), "s", "How long an offer that is not received stays in the broker queue."
    )
    offer_patience_seconds: int = number(30, (12, 900), "s", "How long a parked offer waits for a proxy's answer.")
    client_queue_prefix: str = setting(
        "snowflake-client-", "Prefix of the names of client queues.", pattern=r"[A-Za-z0-9_-]{3,64}"
    )
    # A front hides an offer for as long, and SQS hides a message for twelve hours at most.
    client_queue_lease_seconds: int = number(120, (12, 36_000), "s", "How long a client queue is kept for its client.")
    stray_queue_age_seconds: int = number(
        600, (12, 1_209_600), "s", "Age at which the daily sweep deletes a client queue without a lease."
    )
    http_offer_patience_seconds: int = number(
        5,
        (1, LONGEST_HTTP_TIMEOUT_SECONDS - WORKING_SECONDS),
        "s",
        "How long an offer over HTTP or AMP waits for its answer.",
    )
    match_patience_seconds: int = number(
        5, (1, 300), "s", "How long a matched proxy has to answer before the offer goes back to the pool."
    )
    proxy_recency_seconds: int = number(
        60, (1, 86_400), "s", "A pool without a poll for this long counts as empty, and its clients are denied at once."
    )
    poll_budget_usd: int = number(
        25,
        (1, 10_000),
        "USD a month",
        "What the polls of proxies may cost, however many proxies there are: each gets the interval that leads to as "
        "many polls.",
    )
    allowed_relay_pattern: str = setting(
        "snowflake.torproject.net$", "Relays that proxies must accept.", pattern=r"\^?[A-Za-z0-9.:_-]*\$?"
    )
    bridge_list_file: Path | None = setting(  # noqa: RUF009  # a dataclass field like the others
        None, "Bridge list (JSON lines); default: the default bridge of Snowflake alone."
    )
    country_database_file: Path | None = setting(  # noqa: RUF009  # a dataclass field like the others
        None, "MaxMind country database (.mmdb) for statistics by country; without it, every country is `??`."
    )
    reserve_concurrency: bool = setting(
        default=True,
        description="Reserve concurrent executions for each function that anyone can call, which also limits it: "
        "strangers cannot take those of all other functions. Must be `false` in an account with fewer than "
        "[the stage needs](operations.md#quotas).",
    )
    rendezvous_doors: str = setting(
        "url",
        "Where proxies, and clients over HTTP, reach the stage, separated by commas: `url` for function URLs, which "
        "cost nothing, `api` for an HTTP API, which takes [a domain](first-year.md#custom-domains) and costs "
        "1 USD a million requests.",
        choices=DOORS,
    )
    client_concurrency: int = number(
        50,
        (1, 1000),
        "functions",
        "Requests of HTTP and AMP clients and of the broker's pages that are handled in parallel. Ten times that is "
        "the limit a second of their URL, and once that the limit of each route of the API.",
    )
    proxy_concurrency: int = number(
        50,
        (1, 1000),
        "functions",
        "Polls and answers that are handled in parallel. Ten times that is their limit a second; the API keeps a fifth "
        "of it for answers.",
    )
    page_concurrency: int = number(
        10,
        (1, 1000),
        "functions",
        "Requests of the live page that are handled in parallel; ten times that is their limit a second.",
    )
    offer_concurrency: int = number(10, (2, 1000), "functions", "Batches of offers that are handled in parallel.")
    sweep_interval_minutes: int = number(
        5, (1, 1440), "min", "Interval at which client queues with an expired lease are deleted."
    )
    temporary_queue_prefix: str = setting(
        "mirrord-",
        "Prefix of the names of temporary queues; the roles of split targets must be allowed to read them.",
        pattern=r"[A-Za-z0-9_-]{3,30}",
    )
    splittable_queues: str | None = setting(
        None,
        "Names of queues that may be split, separated by commas; `*` may end a name. Default: none but by tag; "
        "locally `demo-*` and `q_demo*`.",
        pattern=listed(QUEUES),
    )
    splittable_dead_letter_queues: str | None = setting(
        None,
        "Names of their dead-letter queues, separated by commas; temporary queues have no other dead-letter queues.",
        pattern=listed(QUEUES),
    )
    splittable_queue_tag: str | None = setting(
        None,
        "Tag of queues that may be split, as `key=value`.",
        pattern=r"[A-Za-z0-9 _.:/+@-]{1,128}=[A-Za-z0-9 _.:/+@-]{0,256}",
    )
    splittable_queue_key_arns: str | None = setting(
        None,
        "ARNs of the KMS keys of queues that may be split, separated by commas.",
        pattern=listed(r"arn:aws:kms:[a-z0-9-]+:\d{12}:key/[A-Za-z0-9-]+"),
    )
    splittable_targets: str | None = setting(
        None,
        "Consumers that may be switched to temporary queues, as `lambda/NAME`, `ecs/CLUSTER/SERVICE` or `ssm/NAME`, "
        "separated by commas; `*` may end a name. Default: none; locally `lambda/demo-*`, `ecs/demo/demo-*` and "
        "`ssm/demo-*`.",
        pattern=listed(
            r"(?:lambda/[A-Za-z0-9_-]{1,64}|ecs/[A-Za-z0-9_-]{1,255}/[A-Za-z0-9_-]{1,255}|ssm/[A-Za-z0-9_./-]{1,1011})\*?"
        ),
    )
    splittable_target_roles: str | None = setting(
        None,
        "Names of the roles of those consumers, separated by commas; `*` may end a name. Discovery reads their "
        "policies, and ECS tasks are given them again. Default: none; locally `demo-*`.",
        pattern=listed(r"[A-Za-z0-9_+.@-]{1,64}\*?"),
    )
    splittable_buckets: str | None = setting(
        None,
        "Names of buckets whose S3 event notifications may be filtered by the metadata of their objects, separated by "
        "commas; `*` may end a name. Default: none; locally `demo-*`.",
        pattern=listed(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9*]"),
    )
    kubernetes_clusters: KubernetesClusters | None = setting(  # noqa: RUF009 - the value is frozen
        None,
        'Kubernetes clusters whose workloads may be split, by names of your choice: `{"eks": NAME}` for a cluster of '
        'EKS, otherwise `{"endpoint": URL, "ca": PEM, "token_secret": ARN}`. The first one is the default. '
        "Default: none.",
    )
    split_concurrency: int = number(20, (2, 1000), "functions", "Batches of one queue that are forwarded in parallel.")
    split_timeout_seconds: int = number(
        10, (5, 300), "s", "Time-out of the function `split`; no queue with a shorter visibility time-out can be split."
    )
    split_empty_seconds: int = number(
        60,
        (1, 3600),
        "s",
        "How long all counters of a temporary queue are zero before it counts as empty: SQS counts approximately.",
    )
    split_parameter_seconds: int = number(
        60,
        (1, 3600),
        "s",
        "How long the readers of an SSM parameter have to read a new value: as long as the slowest of them keeps one.",
    )
    split_heartbeat_seconds: int = number(
        60, (15, 86_400), "s", "How long a session exists without a heartbeat; commands send one every 10 s."
    )
    exchange_prefix: str = setting(
        "",
        "Prefix of the SQS names of exchanges and bound queues, before `x` and `q_`.",
        pattern=EXCHANGE_PREFIX,
    )
    exchange_retention_seconds: int = number(
        345_600, (60, 1_209_600), "s", "How long a message waits in an exchange, or for a retry."
    )
    exchange_user_quota: int = number(
        100,
        (1, 10_000),
        "queues",
        "Queues that a source or subscriber may declare, and a fifth as many exchanges. Lowering it removes none.",
    )
    route_concurrency: int = number(10, (2, 1000), "functions", "Batches of one exchange that are routed in parallel.")
    route_timeout_seconds: int = number(15, (5, 300), "s", "Time-out of the function `route`.")
    route_retry_seconds: int = number(
        30, (5, 43_200), "s", "Time after which a failed delivery is retried; it doubles with each retry, up to 90 s."
    )
    live_concurrency: int = number(
        10, (2, 1000), "functions", "Batches of inboxes, and of outboxes, that are handled in parallel."
    )
    live_connect_concurrency: int = number(
        50,
        (1, 1000),
        "functions",
        "Connections that are opened or closed in parallel; ten times that is the limit of new ones a second.",
    )
    live_frame_limit: int = number(
        1000,
        (10, 10_000),
        "frames/s",
        "Frames of all connections that the WebSocket API accepts a second; it answers others with an error.",
    )
    live_timeout_seconds: int = number(
        10,
        (5, 60),
        "s",
        f"Time-out of the functions of live; unfinished work is retried after {VISIBILITY_PER_TIMEOUT} times that.",
    )
    page_lists_realms: bool = setting(
        default=True,
        description="Offer the names of all realms in the sign-in form of the live page, to anyone who opens it. With "
        "`false` people type the realm.",
    )
    report_hour_utc: int = number(1, (0, 23), "h (UTC)", "Hour of the day at which yesterday's reports are made.")
    history_interval_hours: int = setting(
        24,
        "Interval at which history is compacted and logs of topics are exported. Events of a topic that are kept "
        "for a shorter time are not all exported.",
        unit="h",
        choices=PARTS_OF_A_DAY,
    )
    history_retention_days: int = number(
        365, (1, 3653), "days", "How long history events are kept, raw and in the table of events."
    )
    log_retention_days: int = setting(30, "How long logs are kept.", unit="days", choices=LOG_RETENTION_DAYS)
    alarms: bool = setting(default=True, description="Create the alarms; without them no failure is reported.")
    every_alarm: bool = setting(
        default=False,
        description="Create an alarm for each function, queue and job, and not only one for each way to stall, lose or "
        "fail.",
    )
    dashboard: bool = setting(default=False, description="Create the CloudWatch dashboard.")
    traces: bool = setting(
        default=False,
        description="Trace the runs of functions with X-Ray, except those of strangers' requests to rendezvous.",
    )
    permissions_boundary: str | None = setting(
        None,
        "Name of a managed policy of the account that bounds the permissions of all roles and users of the stage, also "
        "of users of the exchange.",
        pattern=r"[A-Za-z0-9_+=,.@-]{1,128}",
    )
    alarm_topic_arn: str | None = setting(
        None,
        "SNS topic that is notified of every alarm; without it, alarms are only on the dashboard.",
        pattern=r"arn:aws:sns:[a-z0-9-]+:\d{12}:[A-Za-z0-9_-]{1,256}",
    )
    asset_key_arn: str | None = setting(
        None,
        "ARN of the KMS key of the CDK's asset bucket, if it was bootstrapped with `--bootstrap-kms-key-id`: the Glue "
        "jobs may then decrypt their scripts. The policy of a key that `--bootstrap-customer-key` makes allows it.",
        pattern=r"arn:aws:kms:[a-z0-9-]+:\d{12}:key/[A-Za-z0-9-]+",
    )
    retain_state: bool | None = setting(
        None, "Keep keys, tables and bucket when the stack is deleted; default: yes, except on a local stage."
    )
