"""Rules of the doctor: facts of the account, the region and the machine, judged before a deployment."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from signalbox.doctor.findings import Finding, ok, stop, warn

CREDENTIALS, REGION = "credentials", "region"
SUPPORTED_PARTITION = "aws"


@dataclass(frozen=True, slots=True)
class CallerIdentity:
    """The answer of STS: the account and the ARN of the caller."""

    account: str
    arn: str


def identity_finding(identity: CallerIdentity) -> Finding:
    """Return the finding that names the account and the role or user."""
    caller = identity.arn.split(":", 5)[-1]
    text = f"account {identity.account}, as {caller}"
    if caller == "root":
        return warn(CREDENTIALS, text, remedy="deploy with a role or user: the root user cannot assume CDK's roles")
    return ok(CREDENTIALS, text)


def region_finding(region: str, *, partition: str | None) -> Finding:
    """Return the finding on a region; `partition` is None for a name that is not a region's."""
    if partition is None:
        return stop(REGION, f"{region!r} is not a region of AWS", remedy="set AWS_REGION to one, such as eu-central-1")
    if partition != SUPPORTED_PARTITION:
        text = f"{region} is in the partition {partition!r}; Signalbox was written for {SUPPORTED_PARTITION!r} only"
        return stop(REGION, text, remedy=f"choose a region of the partition {SUPPORTED_PARTITION!r}")
    return ok(REGION, region)


CONCURRENCY = "Lambda concurrency"
QUOTA = "L-B99A9384"  # the code of Service Quotas
DEFAULT_CONCURRENCY = 1_000
# https://docs.aws.amazon.com/lambda/latest/dg/configuration-concurrency.html: what reservations have to leave.
UNRESERVED_MINIMUM = 100
SMALL = "reserve_concurrency=false"


@dataclass(frozen=True, slots=True)
class Demand:
    """The concurrent executions of Lambda that the settings need, without those of exchanges, splits and HTTP."""

    mappings: int
    polled: int
    """The executions of all event source mappings at their maximum."""
    reserved: int
    """The executions that functions reserve."""


@dataclass(frozen=True, slots=True)
class Concurrency:
    """The account's limit of concurrent executions, and the part that no function has reserved."""

    limit: int
    unreserved: int


def concurrency_finding(account: Concurrency, demand: Demand, *, region: str) -> Finding:
    """Return the finding on Lambda's concurrent executions. New accounts often have 10."""
    text = (
        f"{account.limit} executions at a time, {account.unreserved} unreserved; the stage reserves {demand.reserved}, "
        f"its {demand.mappings} mappings take up to {demand.polled}"
    )
    wanted = max(DEFAULT_CONCURRENCY, demand.polled + demand.reserved + UNRESERVED_MINIMUM)
    ask = f"request {wanted}: {_request(wanted, region)}"
    if demand.reserved and account.limit - demand.reserved < UNRESERVED_MINIMUM:
        problem = f"{text}; Lambda refuses reservations that leave less than {UNRESERVED_MINIMUM}"
        return stop(CONCURRENCY, problem, remedy=f"{ask}; until then deploy with {SMALL}")
    if account.unreserved - demand.reserved < UNRESERVED_MINIMUM and demand.reserved:
        return warn(CONCURRENCY, text, remedy=f"{ask}; not needed if this stage has made its reservations before")
    if account.limit - demand.reserved < demand.polled or account.unreserved < demand.polled:
        return warn(CONCURRENCY, text, remedy=f"under load functions are throttled; {ask}")
    return ok(CONCURRENCY, text)


def _request(value: int, region: str) -> str:
    return (
        f"aws service-quotas request-service-quota-increase --service-code lambda --quota-code {QUOTA} "
        f"--desired-value {value} --region {region}"
    )


SOURCES = "queue sources"


@dataclass(frozen=True, slots=True)
class QueueSources:
    """A queue of the stage: whether any queue may use it as its dead-letter queue, and which foreign queues do."""

    name: str
    is_open: bool
    strangers: tuple[str, ...]


def name_prefixes(stage: str, *, exchanges: str, temporary: str, broker: str) -> tuple[str, ...]:
    """Return the prefixes of the names of a stage's queues, except clients' queues, which exist for minutes only.

    `exchanges` begins the names of exchanges and declared queues, `temporary` those of temporary queues.
    """
    return (f"{stage}-", f"{exchanges}x", f"{exchanges}q_", temporary, broker)


def sources_finding(queues: Sequence[QueueSources]) -> Finding:
    """Return the finding on the queues of a stage, none before its first deployment."""
    problems = [f"{queue.name} takes those of {', '.join(queue.strangers)}" for queue in queues if queue.strangers]
    problems += [f"{queue.name} takes those of any queue" for queue in queues if queue.is_open and not queue.strangers]
    if not problems:
        return ok(SOURCES, f"none of the stage's {len(queues)} queues takes the dead letters of other queues")
    return warn(
        SOURCES,
        f"queues take the dead letters of queues that are not the stage's: {'; '.join(problems)}",
        remedy="delete strange queues, or their RedrivePolicy; a deployment and the daily sweeps restrict the others",
    )


RECORDER = "Config recorder"
QUEUE = "AWS::SQS::Queue"
ALL, SOME, ALL_BUT = "ALL_SUPPORTED_RESOURCE_TYPES", "INCLUSION_BY_RESOURCE_TYPES", "EXCLUSION_BY_RESOURCE_TYPES"
DAILY = "DAILY"
# https://aws.amazon.com/config/pricing/: USD for a configuration item in us-east-1.
ITEM_USD, DAILY_ITEM_USD = 0.003, 0.012
ITEMS_OF_A_QUEUE = 2  # its creation and its deletion
MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class Recorder:
    """A recorder of the account: `strategy` with the types that it includes or excludes, and its frequency."""

    name: str
    role_arn: str
    strategy: str
    included: Collection[str] = ()
    excluded: Collection[str] = ()
    frequency: str = "CONTINUOUS"
    """The frequency for queues."""
    is_recording: bool = True
    is_paid: bool = True
    """False for a recorder of an AWS service, whose items are free."""

    @property
    def records_queues(self) -> bool:
        """Return whether the recorder records SQS queues."""
        if self.strategy == SOME:
            return QUEUE in self.included
        return QUEUE not in self.excluded


def recorder_finding(recorders: Collection[Recorder]) -> Finding:
    """Return the finding on the recorders of a region."""
    running = [one for one in recorders if one.is_recording and one.is_paid]
    recording = next((one for one in running if one.records_queues), None)
    if recording is not None:
        return _warning(recording)
    text = "records no queues" if running else "none is recording"
    return ok(RECORDER, text)


def _warning(recorder: Recorder) -> Finding:
    remedy = f"exclude queues, if your rules permit it: {_exclusion(recorder)}"
    if recorder.frequency == DAILY:
        text = f"{recorder.name!r} records queues once a day, {DAILY_ITEM_USD} USD for each that exists then"
        return warn(RECORDER, text, remedy=remedy)
    price = round(MILLION * ITEMS_OF_A_QUEUE * ITEM_USD)
    text = (
        f"{recorder.name!r} records every queue, and each SQS client of Snowflake has one for two minutes: "
        f"{ITEMS_OF_A_QUEUE} items of {ITEM_USD} USD, about {price:,} USD a million rendezvous"
    )
    return warn(RECORDER, text, remedy=remedy)


def _exclusion(recorder: Recorder) -> str:
    """Return the command that records the same types but no queues."""
    if recorder.strategy == SOME:
        kept = ",".join(f'"{kind}"' for kind in sorted(set(recorder.included) - {QUEUE}))
        group = f'{{"resourceTypes":[{kept}],"recordingStrategy":{{"useOnly":"{SOME}"}}}}'
    else:
        left_out = ",".join(f'"{kind}"' for kind in sorted({*recorder.excluded, QUEUE}))
        group = (
            f'{{"exclusionByResourceTypes":{{"resourceTypes":[{left_out}]}},'
            f'"recordingStrategy":{{"useOnly":"{ALL_BUT}"}}}}'
        )
    return (
        "aws configservice put-configuration-recorder "
        f"--configuration-recorder name={recorder.name},roleARN={recorder.role_arn} --recording-group '{group}'"
    )


RUNTIME = "Lambda runtime"
# The deprecation date in https://docs.aws.amazon.com/lambda/latest/dg/lambda-runtimes.html, in the table of AgentCore's
# runtimes and in https://endoflife.date/aws-lambda, all read on 2026-11-26. New functions are refused a month later,
# updates two months later.
END_OF_SUPPORT: Mapping[str, date] = {"3.13": date(2029, 6, 30)}
NOTICE = timedelta(days=270)


def runtime_finding(python: str, *, today: date, has_compiler: bool) -> Finding:
    """Return the finding on the functions' Python; `has_compiler` is whether this machine can write its bytecode."""
    end, name = END_OF_SUPPORT[python], f"python{python}"
    remedy = "deploy a later version of Signalbox"
    if today > end:
        return stop(RUNTIME, f"{name}: AWS ended its support on {end}", remedy=remedy)
    if today > end - NOTICE:
        return warn(RUNTIME, f"{name}: AWS ends its support on {end}", remedy=remedy)
    if not has_compiler:
        return warn(
            RUNTIME,
            f"{name} is not on PATH: the functions ship without bytecode, and every cold start compiles them",
            remedy=f"uv python install {python}, and put the folder that it names on PATH",
        )
    return ok(RUNTIME, f"{name}, supported until {end}")
