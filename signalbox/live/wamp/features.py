"""What WELCOME announces: the roles that we have, and of their features those that work."""

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
# A dealer's role has to be there: wampy calls nobody when it is not.
ROLES: Mapping[str, object] = {
    "broker": {"features": dict.fromkeys(BROKER_FEATURES, True)},
    "dealer": {"features": {"session_meta_api": True}},
}
