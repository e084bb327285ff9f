"""The recorders of AWS Config in a region."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from signalbox.aws.doctor.calls import PATIENCE, call
from signalbox.doctor.recorder import ALL, ALL_BUT, QUEUE, SOME, Recorder

if TYPE_CHECKING:
    import boto3

FREE = "INTERNAL"  # the scope of recorders that AWS services own


def recorders(session: "boto3.Session") -> list[Recorder]:
    """Return the recorders of the session's region. Raises the errors of `call`."""
    config = session.client("config", config=PATIENCE)
    with call("config:DescribeConfigurationRecorders"):
        found = config.describe_configuration_recorders()["ConfigurationRecorders"]
    with call("config:DescribeConfigurationRecorderStatus"):
        states = config.describe_configuration_recorder_status()["ConfigurationRecordersStatus"]
    recording = {state["name"] for state in states if state.get("recording")}
    return [_recorder(one, is_recording=one["name"] in recording) for one in found]


def _recorder(found: Mapping[str, Any], *, is_recording: bool) -> Recorder:
    group, mode = found.get("recordingGroup", {}), found.get("recordingMode", {})
    excluded = group.get("exclusionByResourceTypes", {}).get("resourceTypes", ())
    overrides = [one for one in mode.get("recordingModeOverrides", ()) if QUEUE in one.get("resourceTypes", ())]
    frequency = (overrides[0] if overrides else mode).get("recordingFrequency", "CONTINUOUS")
    # Recorders that were made before strategies existed have `allSupported` only.
    default = ALL if group.get("allSupported", not group.get("resourceTypes")) else SOME
    return Recorder(
        found["name"],
        found.get("roleARN", ""),
        ALL_BUT if excluded else group.get("recordingStrategy", {}).get("useOnly", default),
        included=tuple(group.get("resourceTypes", ())),
        excluded=tuple(excluded),
        frequency=frequency,
        is_recording=is_recording,
        is_paid=found.get("recordingScope") != FREE,
    )
