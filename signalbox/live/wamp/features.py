"""The roles and features that WELCOME announces."""

from collections.abc import Mapping

AGENT = "Signalbox"
BROKER_FEATURES = (
    "event_history",
    "event_retention",
    "pattern_based_subscription",
    "publisher_exclusion",
    "publisher_identification",
    "session_meta_api",
    "subscriber_blackwhite_listing",
    "subscription_meta_api",
    "subscription_revocation",
)
# The dealer role is required: wampy sends no CALL to a router that does not announce it.
ROLES: Mapping[str, object] = {
    "broker": {"features": dict.fromkeys(BROKER_FEATURES, True)},
    "dealer": {"features": {"session_meta_api": True}},
}
