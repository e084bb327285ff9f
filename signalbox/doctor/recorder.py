"""AWS Config: whether a recorder would record every client queue, and what that costs."""

from collections.abc import Collection
from dataclasses import dataclass

from signalbox.doctor.findings import Finding, ok, warn

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
