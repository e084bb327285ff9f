"""Parsing of the CDK context into a `Config`, with all problems reported together."""

import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path

from stacks.settings.checks import broken_references, broken_region
from stacks.settings.clusters import KubernetesClusters
from stacks.settings.config import OFFER_AGE_GRACE_SECONDS, Config, settings
from stacks.settings.setting import Setting

# Keys that the CDK CLI and its home file add to the context, in addition to keys with ':' or '@'.
CDK_KEYS = frozenset({"acknowledged-issue-numbers", "cli-telemetry", "notices"})
TRUTH = {"true": True, "false": False}
# Lambda allows 4 KB for all variables of a function, and the others of splitting's `control` need up to 1.9 KB.
LARGEST_BYTES = 2000


class InvalidConfig(Exception):
    """Raised when the context is not a valid configuration; `problems` lists every problem."""

    def __init__(self, problems: tuple[str, ...]) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


def read_config(context: Mapping[str, object], *, default_region: str | None = None) -> Config:
    """Return the configuration of a CDK context. Raises `InvalidConfig` with all problems.

    `default_region` is that of a stage without the setting `region`.
    """
    known = {setting.name: setting for setting in settings()}
    given = {key: value for key, value in context.items() if not _belongs_to_cdk(key)}
    problems = [_unknown(key, list(known)) for key in given if key not in known]
    values: dict[str, object] = {}
    for key in given.keys() & known.keys():
        try:
            values[key] = _value(known[key], given[key])
        except ValueError as error:
            problems.append(f"{key} {error}")
    return _checked(values, problems, default_region)


def check_config(config: Config, given: Mapping[str, object]) -> None:
    """Raise `InvalidConfig` with all problems of a configuration of the CDK construct; `given` are the values set."""
    known = {setting.name: setting for setting in settings()}
    problems = []
    for name, value in given.items():
        try:
            _value(known[name], str(value) if isinstance(value, Path) else value)
        except ValueError as error:
            problems.append(f"{name} {error}")
    if found := (*problems, *_broken_relations(config)):
        raise InvalidConfig(found)


def _belongs_to_cdk(key: str) -> bool:
    return ":" in key or "@" in key or key in CDK_KEYS


def _unknown(key: str, known: list[str]) -> str:
    nearest = get_close_matches(key, known, n=1)
    return f"{key!r} is not a setting" + (f"; did you mean {nearest[0]!r}?" if nearest else ": see docs/settings.md")


def _checked(values: Mapping[str, object], problems: list[str], default_region: str | None) -> Config:
    # An invalid value is replaced by its default, so that the constraints between the others are checked too.
    config = Config(**values)  # type: ignore[arg-type]  # the types were checked one by one
    region = config.region or default_region
    found = (*sorted(problems), *broken_region(region), *broken_references(config, region), *_broken_relations(config))
    if found:
        raise InvalidConfig(found)
    return config


def _value(setting: Setting, given: object) -> object:
    if setting.optional and given in (None, ""):
        return None
    if setting.kind is bool:
        return _truth(given)
    if setting.kind is int:
        return _number(setting, given)
    if setting.kind is KubernetesClusters:
        return KubernetesClusters.read(given)
    if not isinstance(given, str):
        raise ValueError(f"must be text, not {given!r}")  # noqa: TRY004  # one kind of problem for the caller
    return _existing_file(given) if setting.kind is Path else _text(setting, given)


def _truth(given: object) -> bool:
    if isinstance(given, bool):
        return given
    if isinstance(given, str) and given.lower() in TRUTH:
        return TRUTH[given.lower()]
    raise ValueError(f"must be true or false, not {given!r}")


def _number(setting: Setting, given: object) -> int:
    if isinstance(given, bool) or not re.fullmatch(r"-?[0-9]{1,15}", str(given)):
        raise ValueError(f"must be a whole number, not {given!r}")
    number = int(str(given))
    if setting.choices is not None and number not in setting.choices:
        raise ValueError(f"must be one of {', '.join(map(str, setting.choices))}, not {number}")
    if setting.minimum is not None and number < setting.minimum:
        raise ValueError(f"must be at least {setting.minimum} {setting.unit}".rstrip() + f", not {number}")
    if setting.maximum is not None and number > setting.maximum:
        raise ValueError(f"must be at most {setting.maximum} {setting.unit}".rstrip() + f", not {number}")
    return number


def _text(setting: Setting, given: str) -> str:
    if setting.choices is not None:
        _check_words(given, tuple(map(str, setting.choices)))
    if setting.pattern is not None and not re.fullmatch(setting.pattern, given):
        allowed = f"match {setting.pattern}" if setting.form is None else f"be {setting.form}"
        raise ValueError(f"must {allowed}, not {given[:100]!r}")
    return given


def _check_words(given: str, words: tuple[str, ...]) -> None:
    for word in given.split(","):
        if word not in words:
            nearest = get_close_matches(word.strip().casefold(), words, n=1)
            hint = f"; did you mean {nearest[0]!r}?" if nearest else ""
            raise ValueError(f"must be words of {', '.join(words)}, separated by commas, not {word[:100]!r}{hint}")


def _existing_file(given: str) -> Path:
    try:
        path = Path(given).expanduser()
        is_file = path.is_file()
    except (OSError, RuntimeError) as error:  # too long, not readable, or the home of an unknown user
        reason = error.strerror if isinstance(error, OSError) else error
        raise ValueError(f"names no file: {given[:100]!r}: {reason}") from error
    if not is_file:
        raise ValueError(f"names no file: {given!r}")
    return path


def _broken_relations(config: Config) -> Iterator[str]:
    yield from _broken_times(config)
    yield from _broken_front(config)
    yield from _broken_names(config)
    if config.has("rendezvous") and "url" in config.doors and not config.reserve_concurrency:
        yield (
            "rendezvous_doors=url needs reserve_concurrency=true, which bounds the requests of strangers: set "
            "rendezvous_doors=api, which has limits of its own"
        )
    yield from _broken_splitting(config)
    yield from _broken_exchanges(config)


def _broken_times(config: Config) -> Iterator[str]:
    shortest = config.offer_age_limit_seconds + OFFER_AGE_GRACE_SECONDS
    if config.broker_queue_retention_seconds < shortest:
        yield (
            f"broker_queue_retention_seconds must be at least {shortest} s with offer_patience_seconds "
            f"{config.offer_patience_seconds}, or offers expire before their clients get a reply; "
            f"it is {config.broker_queue_retention_seconds}"
        )
    if config.client_queue_lease_seconds < config.offer_patience_seconds:
        yield (
            f"client_queue_lease_seconds must be at least offer_patience_seconds ({config.offer_patience_seconds} s), "
            f"or the answer finds no queue; it is {config.client_queue_lease_seconds}"
        )
    if config.stray_queue_age_seconds < config.client_queue_lease_seconds:
        yield (
            f"stray_queue_age_seconds must be at least client_queue_lease_seconds "
            f"({config.client_queue_lease_seconds} s); it is {config.stray_queue_age_seconds}"
        )


def _broken_front(config: Config) -> Iterator[str]:
    if config.broker_url is None:
        return
    if config.broker_url.startswith("http:") and not config.local:
        yield "broker_url must be https: offers contain addresses of clients"
    if not config.is_front:
        yield "broker_url is a setting of rendezvous: add it to capabilities"


def _broken_names(config: Config) -> Iterator[str]:
    # The client's credentials are public and may receive from every queue whose name starts with the prefix.
    if config.broker_queue.startswith(config.client_queue_prefix):
        yield f"client_queue_prefix {config.client_queue_prefix!r} would open the broker queue {config.broker_queue!r}"
    if _opens_own(config.client_queue_prefix, config.stage):
        yield f"client_queue_prefix {config.client_queue_prefix!r} would open the queues of stage {config.stage!r}"
    if config.broker_queue_key_arn and not config.broker_queue_arn:
        yield "broker_queue_key_arn is only for an existing queue: set broker_queue_arn too"


def _broken_splitting(config: Config) -> Iterator[str]:
    temporary = config.temporary_queue_prefix
    for name, prefix in (
        ("client_queue_prefix", config.client_queue_prefix),
        ("the stage's own", f"{config.stage}-"),
        ("the broker queue", config.broker_queue),
    ):
        if _overlap(temporary, prefix):
            yield f"temporary_queue_prefix {temporary!r} overlaps with {name}: {prefix!r}"
    for queue in config.queues_to_split:
        # A user who splits such a queue could read commands and temporary queues of other users.
        if _overlap(queue.split("*")[0], temporary) or _overlap(queue.split("*")[0], f"{config.stage}-"):
            yield f"splittable_queues: {queue!r} would open queues of the stage {config.stage!r} itself"
    if any(target.startswith("ecs/") for target in config.targets_to_switch) and not config.target_roles:
        yield "splittable_targets names ECS services: set splittable_target_roles too, to the roles of their tasks"
    size = len(config.clusters.variable.encode()) + len(",".join(config.buckets_to_read))
    if size > LARGEST_BYTES:
        yield (
            f"kubernetes_clusters, with the CAs in PEM, and splittable_buckets have {size} bytes, and at most "
            f"{LARGEST_BYTES} fit into the variables of a function: name fewer"
        )


def _broken_exchanges(config: Config) -> Iterator[str]:
    if config.route_retry_seconds < config.route_timeout_seconds:
        yield (
            f"route_retry_seconds must be at least route_timeout_seconds ({config.route_timeout_seconds} s), "
            f"or Lambda does not read the queue of retries; it is {config.route_retry_seconds}"
        )
    # Permissions on exchanges and queues are name patterns, which must not match these.
    for family in (f"{config.exchange_prefix}x", f"{config.exchange_prefix}q_"):
        for name, prefix in (
            ("client_queue_prefix", config.client_queue_prefix),
            ("temporary_queue_prefix", config.temporary_queue_prefix),
            ("the broker queue", config.broker_queue),
        ):
            if _overlap(family, prefix):
                yield f"exchange_prefix {config.exchange_prefix!r}: {family!r} overlaps with {name}: {prefix!r}"
        if _opens_own(family, config.stage):
            yield (
                f"exchange_prefix {config.exchange_prefix!r}: {family!r} would open the queues of stage "
                f"{config.stage!r} itself"
            )


def _opens_own(prefix: str, stage: str) -> bool:
    """Return whether a prefix matches queues of the stage itself, named by settings or generated by CDK."""
    named = (f"{stage}-split-", f"{stage}-exchange-", f"{stage}-live-")
    return any(_overlap(prefix, own) for own in named) or bool(re.match(f"{re.escape(stage)}-[A-Z]", prefix))


def _overlap(one: str, other: str) -> bool:
    return one.startswith(other) or other.startswith(one)
