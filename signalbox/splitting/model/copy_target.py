"""mirrord's `feature.copy_target`: with `scale_down`, a session is the only consumer of its queues."""

from collections.abc import Mapping

from signalbox.documents import Section, shown

FIELDS = ("enabled", "scale_down", "exclude_containers", "exclude_init_containers")


def is_scaled_down(feature: Section) -> bool:
    """Return whether a session replaces its target, so that it consumes queues alone; add errors to the problems.

    `copy_target` is a boolean, or an object that is enabled unless it says otherwise
    (https://github.com/metalbear-co/mirrord/blob/main/mirrord/config/src/feature/copy_target.rs).
    """
    value = feature.fields.get("copy_target")
    if value is None or isinstance(value, bool):
        return False
    if not isinstance(value, Mapping):
        feature.problem("copy_target", f"expected true, false or an object, not {shown(value)}")
        return False
    section = feature.section("copy_target")
    section.refuse_unknown(FIELDS)
    scales_down, is_enabled = section.flag("scale_down"), section.flag("enabled")
    return scales_down and (is_enabled or section.fields.get("enabled") is None)
