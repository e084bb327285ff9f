"""Lambda's concurrent executions in an account against what the settings of a stage need."""

from dataclasses import dataclass

from signalbox.doctor.findings import Finding, ok, stop, warn

CONCURRENCY = "Lambda concurrency"
QUOTA = "L-B99A9384"  # the code of Service Quotas
DEFAULT_CONCURRENCY = 1_000
# https://docs.aws.amazon.com/lambda/latest/dg/configuration-concurrency.html: what reservations have to leave.
UNRESERVED_MINIMUM = 100
SMALL = "reserve_concurrency=false and poll_hold_limit=0"


@dataclass(frozen=True, slots=True)
class Demand:
    """The concurrent executions of Lambda that the settings need, without those of exchanges, splits and HTTP."""

    mappings: int
    polled: int
    """The executions of all event source mappings at their maximum."""
    held_polls: int
    """The held polls outside of reservations."""
    reserved: int
    """The executions that functions reserve."""

    @property
    def most(self) -> int:
        """The executions under full load."""
        return self.held_polls + self.polled


@dataclass(frozen=True, slots=True)
class Concurrency:
    """The account's limit of concurrent executions, and the part that no function has reserved."""

    limit: int
    unreserved: int


def concurrency_finding(account: Concurrency, demand: Demand, *, region: str) -> Finding:
    """Return the finding on Lambda's concurrent executions. New accounts often have 10."""
    text = (
        f"{account.limit} executions at a time, {account.unreserved} unreserved; the stage reserves {demand.reserved}, "
        f"its {demand.mappings} mappings take up to {demand.polled}, held polls {demand.held_polls}"
    )
    wanted = max(DEFAULT_CONCURRENCY, demand.most + demand.reserved + UNRESERVED_MINIMUM)
    ask = f"request {wanted}: {_request(wanted, region)}"
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


def _request(value: int, region: str) -> str:
    return (
        f"aws service-quotas request-service-quota-increase --service-code lambda --quota-code {QUOTA} "
        f"--desired-value {value} --region {region}"
    )
