"""The roles of the router and their supported features, as WELCOME announces them."""

from collections.abc import Collection, Mapping

AGENT = "Signalbox"
BROKER_FEATURES = (
    "event_retention",
    "pattern_based_subscription",
    "publisher_exclusion",
    "publisher_identification",
    "subscriber_blackwhite_listing",
    "subscription_revocation",
)
DEALER_FEATURES = frozenset({"session_meta_api"})


def roles(procedure_features: Collection[str]) -> Mapping[str, object]:
    """Return the roles for WELCOME, given the features of the procedures that can be called.

    The dealer's role is always announced: wampy does not call without it.
    """
    broker, dealer = {*BROKER_FEATURES, *procedure_features}, DEALER_FEATURES.intersection(procedure_features)
    return {
        "broker": {"features": dict.fromkeys(sorted(broker), True)},
        "dealer": {"features": dict.fromkeys(sorted(dealer), True)},
    }
