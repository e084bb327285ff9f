"""The quotas of an account against what the settings of a stage need."""

from dataclasses import dataclass, replace

from signalbox.doctor.findings import Finding, ok, stop, warn

CONCURRENCY, REQUESTS, USERS, ROLES, TABLES, SCHEDULES = (
    "Lambda concurrency",
    "API Gateway requests",
    "IAM users",
    "IAM roles",
    "DynamoDB tables",
    "EventBridge Scheduler",
)
# The codes of Service Quotas, as in https://docs.aws.amazon.com/apigateway/latest/developerguide/limits.html
CONCURRENCY_QUOTA, REQUESTS_QUOTA, TABLES_QUOTA = "L-B99A9384", "L-8A5B8E43", "L-F98FE922"
DEFAULT_CONCURRENCY = 1_000
# https://docs.aws.amazon.com/lambda/latest/dg/configuration-concurrency.html: what reservations have to leave.
UNRESERVED_MINIMUM = 100
SMALL = "reserve_concurrency=false and poll_hold_limit=0"
# Each user of the exchange is an IAM user; fewer free places than this are worth a word.
USERS_TO_SPARE = 50
# https://docs.aws.amazon.com/scheduler/latest/UserGuide/scheduler-quotas.html
SCHEDULE_GROUPS, SCHEDULES_LIMIT = 500, 1_000_000


@dataclass(frozen=True, slots=True)
class Demand:
    """What the settings need: executions of Lambda at a time, requests a second, and resources by number."""

    mappings: int
    polled: int
    """The executions of all event source mappings at their maximum."""
    held_polls: int
    """The held polls outside of reservations."""
    reserved: int
    requests_per_second: int
    schedules: int
    roles: int
    tables: int

    @property
    def most(self) -> int:
        """The executions under full load, without exchanges, splits and HTTP requests."""
        return self.held_polls + self.polled


@dataclass(frozen=True, slots=True)
class Concurrency:
    """The account's limit of concurrent executions, and the part that no function has reserved."""

    limit: int
    unreserved: int


@dataclass(frozen=True, slots=True)
class Places:
    """The number of resources of a kind, and its quota."""

    used: int
    quota: int

    @property
    def free(self) -> int:
        """The number of resources that can still be made."""
        return self.quota - self.used


def concurrency_finding(account: Concurrency, demand: Demand, *, region: str) -> Finding:
    """Return the finding on Lambda's concurrent executions. New accounts often have 10."""
    text = (
        f"{account.limit} executions at a time, {account.unreserved} unreserved; the stage reserves {demand.reserved}, "
        f"its {demand.mappings} mappings take up to {demand.polled}, held polls {demand.held_polls}"
    )
    wanted = max(DEFAULT_CONCURRENCY, demand.most + demand.reserved + UNRESERVED_MINIMUM)
    ask = f"request {wanted}: {_request('lambda', CONCURRENCY_QUOTA, wanted, region)}"
    if demand.reserved and account.limit - demand.reserved < UNRESERVED_MINIMUM:
        problem = f"{text}; Lambda refuses reservations that leave less than {UNRESERVED_MINIMUM}"
        return stop(CONCURRENCY, problem, remedy=f"{ask}; until then deploy with {SMALL}")
    if account.limit <= demand.held_polls:
        return stop(CONCURRENCY, f"{text}: held polls would throttle all else", remedy=f"{ask}; or {SMALL}")
    if account.unreserved - demand.reserved < UNRESERVED_MINIMUM and demand.reserved:
        return warn(CONCURRENCY, text, remedy=f"{ask}; not needed if this stage has made its reservations before")
    if account.limit - demand.reserved < demand.most or account.unreserved < demand.most:
        return warn(CONCURRENCY, text, remedy=f"under load functions are throttled; {ask}")
    return ok(CONCURRENCY, text)


def requests_finding(quota: float, demand: Demand, *, region: str) -> Finding:
    """Return the finding on the account's requests a second, which all of its APIs share."""
    text = f"{quota:.0f} a second for all APIs of the account; the stage's let in {demand.requests_per_second}"
    if quota > demand.requests_per_second:
        return ok(REQUESTS, text)
    wanted = 2 * demand.requests_per_second
    request = _request("apigateway", REQUESTS_QUOTA, wanted, region)
    remedy = f"a flood of this stage would throttle all other APIs of the account; request {wanted}: {request}"
    return warn(REQUESTS, text, remedy=remedy)


def users_finding(users: Places) -> Finding:
    """Return the finding on IAM users: one for Snowflake's clients, and one for each user of the exchange."""
    text = f"{users.used} of {users.quota}; a stage has one, and one for each user of the exchange"
    remedy = "request more IAM users in the console of Service Quotas (us-east-1)"
    if users.free < 1:
        return stop(USERS, text, remedy=remedy)
    if users.free < USERS_TO_SPARE:
        return warn(USERS, text, remedy=remedy)
    return ok(USERS, text)


def roles_finding(roles: Places, demand: Demand) -> Finding:
    """Return the finding on IAM roles: every function and job has its own."""
    return _places(ROLES, roles, demand.roles, remedy="request more IAM roles in the console of Service Quotas")


def tables_finding(tables: Places, demand: Demand, *, region: str) -> Finding:
    """Return the finding on the number of DynamoDB tables."""
    wanted = tables.quota + demand.tables
    return _places(TABLES, tables, demand.tables, remedy=_request("dynamodb", TABLES_QUOTA, wanted, region))


def schedules_finding(groups: int, demand: Demand) -> Finding:
    """Return the finding on the groups of EventBridge Scheduler; a stage has one."""
    places = Places(groups, SCHEDULE_GROUPS)
    ask = "request more schedule groups in the console of Service Quotas"
    found = _places(SCHEDULES, places, 1, remedy=ask)
    return replace(found, text=f"groups: {found.text}, with {demand.schedules} of {SCHEDULES_LIMIT:,} schedules")


def _places(check: str, places: Places, needed: int, *, remedy: str) -> Finding:
    text = f"{places.used} of {places.quota}; a new stage has {needed}"
    if places.free >= needed:
        return ok(check, text)
    # A stage that is updated has them already, so this is no obstacle for certain.
    return warn(check, text, remedy=f"only for a new stage: {remedy}")


def _request(service: str, code: str, value: int, region: str) -> str:
    return (
        f"aws service-quotas request-service-quota-increase --service-code {service} --quota-code {code} "
        f"--desired-value {value} --region {region}"
    )
