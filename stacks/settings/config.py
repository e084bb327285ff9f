"""The configuration of a deployment: its settings and the values derived from them."""

from collections.abc import Collection
from dataclasses import dataclass

from stacks.settings.choices import CAPABILITIES, OFFER_VISIBILITY_SECONDS, WORKING_SECONDS, Choices
from stacks.settings.clusters import KubernetesClusters
from stacks.settings.setting import Setting, parts, settings_of

# An offer that exceeds its patience by this much is not parked: the queue has no working reader.
OFFER_AGE_GRACE_SECONDS = 60
# What an unmatched poll costs at each door (docs/rendezvous.md); a test compares it with the counted calls.
POLL_USD_PER_MILLION = {"url": 0.6, "api": 1.7}
MINUTES_OF_MONTH = 30 * 24 * 60
# The target of splitting's demo on the local stage.
DEMO, DEMO_TARGETS = ("demo-*",), ("lambda/demo-*", "ecs/demo/demo-*", "ssm/demo-*")


class StageName:
    """The name of a resource as a property of the configuration: the stage, then what the resource is."""

    def __init__(self, resource: str) -> None:
        """Name the `resource` of each stage."""
        self._resource = resource

    def __get__(self, config: Choices, _owner: object = None) -> str:
        """Return the name in the stage of `config`."""
        return f"{config.stage}-{self._resource}"


class Listed:
    """The entries of a comma-separated setting; without one, those of the demo on the local stage."""

    def __init__(self, setting: str, *, demo: tuple[str, ...] = ()) -> None:
        """Read the `setting` of each stage."""
        self._setting, self._demo = setting, demo

    def __get__(self, config: Choices, _owner: object = None) -> tuple[str, ...]:
        """Return the entries of `config`."""
        return parts(getattr(config, self._setting)) or (self._demo if config.local else ())


@dataclass(frozen=True, slots=True)
class Config(Choices):
    """The settings of a deployment, and the values derived from them."""

    history_stream = StageName("history")
    history_overflow_queue = StageName("history-overflow")  # events that the stream refuses
    control_queue = StageName("split-control")  # policies of users contain it
    split_reply_queue = StageName("split-reply")
    # Those of the administrators: each user of the exchange has a control and a reply queue of its own.
    exchange_control_queue = StageName("exchange-control")
    exchange_reply_queue = StageName("exchange-reply")
    exchange_retry_queue = StageName("exchange-retries")
    live_inbox = StageName("live-inbox.fifo")
    live_outbox = StageName("live-outbox.fifo")
    live_overview_calls = StageName("live-overview.fifo")  # calls to the procedures of live
    live_timers = StageName("live-timers")
    doors = Listed("rendezvous_doors")  # the ways in which proxies, and clients over HTTP, reach the stage
    queues_to_split = Listed("splittable_queues", demo=DEMO)  # name patterns, as those of the next four
    dead_letter_queues_to_read = Listed("splittable_dead_letter_queues")
    targets_to_switch = Listed("splittable_targets", demo=DEMO_TARGETS)
    target_roles = Listed("splittable_target_roles", demo=DEMO)
    buckets_to_read = Listed("splittable_buckets", demo=DEMO)  # filters may use the metadata of their objects
    queue_keys_to_use = Listed("splittable_queue_key_arns")

    @property
    def parts(self) -> tuple[str, ...]:
        """The capabilities of the stage, in their order. A front is not a capability."""
        chosen = _in_order(parts(self.capabilities))
        return tuple(name for name in chosen if name != "rendezvous") if self.is_front else chosen

    @property
    def is_front(self) -> bool:
        """True if rendezvous is a front of an existing broker: a queue and a function, without data."""
        return self.broker_url is not None and "rendezvous" in parts(self.capabilities)

    @property
    def stored_parts(self) -> tuple[str, ...]:
        """The capabilities whose data the state stack has: those of the stage, and those taken away from it."""
        return _in_order((*self.parts, *parts(self.kept_capabilities)))

    def has(self, capability: str) -> bool:
        """Return whether the stage has a capability."""
        return capability in self.parts

    @property
    def keeps_state(self) -> bool:
        """True when stateful resources are retained after their stack is deleted."""
        return not self.local if self.retain_state is None else self.retain_state

    @property
    def polls_per_minute(self) -> int:
        """The polls of proxies that the budget pays for, all of which may come to the dearest door."""
        price = max(POLL_USD_PER_MILLION[door] for door in self.doors)
        return max(round(self.poll_budget_usd * 1_000_000 / price / MINUTES_OF_MONTH), 1)

    @property
    def broker_queue(self) -> str:
        """The name of the broker queue, created or imported."""
        return self.broker_queue_arn.rsplit(":", 1)[-1] if self.broker_queue_arn else self.broker_queue_name

    @property
    def offer_timeout_seconds(self) -> int:
        """The longest run of the offer function: as long as its messages are hidden."""
        return OFFER_VISIBILITY_SECONDS

    @property
    def client_timeout_seconds(self) -> int:
        """The longest run of the client function."""
        return self.http_offer_patience_seconds + WORKING_SECONDS

    @property
    def reservations(self) -> dict[str, int]:
        """The reserved concurrency of each function that anyone can call, by construct path; empty if turned off."""
        if not self.reserve_concurrency:
            return {}
        reserved = {
            "rendezvous": {"Doors/Proxies": self.proxy_concurrency, "Doors/Clients": self.client_concurrency},
            "live": {"Live/Connect": self.live_connect_concurrency, "Live/Page": self.page_concurrency},
        }
        return {name: number for part, found in reserved.items() if self.has(part) for name, number in found.items()}

    @property
    def offer_age_limit_seconds(self) -> int:
        """The age in seconds of an offer at which the queue counts as without a working reader."""
        return self.offer_patience_seconds + OFFER_AGE_GRACE_SECONDS

    @property
    def history_database(self) -> str:
        """The name of the Glue database of the Iceberg tables, which queries contain."""
        return f"{self.stage.replace('-', '_')}_lake"

    @property
    def clusters(self) -> KubernetesClusters:
        """The Kubernetes clusters whose workloads may be split."""
        return self.kubernetes_clusters or KubernetesClusters(())

    @property
    def kubernetes_group(self) -> str:
        """The group of Kubernetes that the function `control` has in clusters of EKS."""
        return f"signalbox:{self.stage}"


def _in_order(named: Collection[str]) -> tuple[str, ...]:
    brought = {*named, *(("exchange",) if "live" in named else ())}
    return tuple(name for name in CAPABILITIES if name in brought)


def settings() -> tuple[Setting, ...]:
    """Return all settings in the order of their definition."""
    return settings_of(Config)
