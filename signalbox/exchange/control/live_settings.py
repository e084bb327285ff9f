"""Changes of a live exchange's settings, as read from a `declare_exchange` command."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from signalbox.documents import Section, shown
from signalbox.exchange.control.issuers import check_url, read_issuers
from signalbox.exchange.model.issuers import Issuer
from signalbox.exchange.model.records import LiveSettings, OrderBy, Retention
from signalbox.exchange.model.topics import short_string_problem
from signalbox.queues import FIFO_SUFFIX, is_fifo
from signalbox.sarracenia.rights.names import UserName, parse_user_name

LIVE_FIELDS = ("live", "order_by", "anonymous", "retention", "rules", "issuers", "arvados", "arvados_api")
RETENTION_FIELDS = ("count", "age_seconds")
MAXIMUM_COUNT = 1_000_000
MAXIMUM_AGE_SECONDS = 366 * 86_400
MAXIMUM_RULES = 50
MAXIMUM_JSON = 8_192  # of rules and of issuers: a router reads the record with both for each batch


@dataclass(frozen=True, slots=True)
class RetentionPatch:
    """Changes of a topic's retention: None keeps a limit, and 0 removes it."""

    count: int | None = None
    age: timedelta | None = None

    def apply_to(self, retention: Retention) -> Retention:
        """Return a retention with these changes."""
        return Retention(
            count=retention.count if self.count is None else self.count or None,
            age=retention.age if self.age is None else self.age or None,
        )


@dataclass(frozen=True, slots=True)
class LiveSettingsPatch:
    """Changes of an exchange's live settings: None keeps a setting, or sets its default on a new live exchange.

    "" as `anonymous` refuses connections without a secret; `rules` and `issuers` replace all existing ones; `ends`
    removes all live settings.
    """

    ends: bool = False
    order_by: OrderBy | None = None
    anonymous: UserName | None = None
    retention: RetentionPatch = RetentionPatch()
    rules: Mapping[str, RetentionPatch] | None = None
    issuers: tuple[Issuer, ...] | None = None
    arvados: bool | None = None
    arvados_api: str | None = None

    def apply_to(self, live: LiveSettings | None, earlier: tuple[Retention, ...] = ()) -> LiveSettings | None:
        """Return settings with these changes; `earlier` is that of an exchange that was live before."""
        if self.ends:
            return None
        found = live or LiveSettings(earlier=earlier)
        rules = found.rules
        if self.rules is not None:
            rules = {prefix: rule.apply_to(Retention()) for prefix, rule in self.rules.items()}
        retention = self.retention.apply_to(found.retention)
        is_same = live is None or (retention, rules) == (found.retention, found.rules)
        return LiveSettings(
            order_by=self.order_by or found.order_by,
            anonymous=found.anonymous if self.anonymous is None else self.anonymous or None,
            retention=retention,
            rules=rules,
            issuers=found.issuers if self.issuers is None else self.issuers,
            arvados=found.arvados if self.arvados is None else self.arvados,
            arvados_api=found.arvados_api if self.arvados_api is None else self.arvados_api,
            earlier=found.earlier if is_same else (Retention(age=found.longest_age),),
        )


def read_live_settings(section: Section, *, exchange: str) -> LiveSettingsPatch | None:
    """Read the live fields of a `declare_exchange` command; return None if it has none."""
    given = [name for name in LIVE_FIELDS if section.fields.get(name) is not None]
    if not given:
        return None
    if "live" in given and not section.flag("live"):
        for name in given:
            if name != "live":
                section.problem(name, "is allowed for live exchanges only")
        return LiveSettingsPatch(ends=True)
    for name in ("rules", "issuers"):
        if _is_long(section.fields.get(name)):
            section.problem(name, f"exceeds {MAXIMUM_JSON:,} bytes of JSON")
    if not is_fifo(exchange):
        section.problem(given[0], f"only ordered exchanges can be live; their names end with {FIFO_SUFFIX!r}")
    return LiveSettingsPatch(
        order_by=section.choice("order_by", OrderBy, default=None),
        anonymous=_anonymous(section),
        retention=_retention(section.section("retention")) if "retention" in given else RetentionPatch(),
        rules=_rules(section),
        issuers=read_issuers(section),
        arvados=section.flag("arvados") if "arvados" in given else None,
        arvados_api=_arvados_api(section),
    )


def _is_long(value: object) -> bool:
    try:
        return len(json.dumps(value)) > MAXIMUM_JSON
    except RecursionError:  # a little less nesting than the parser allows
        return True


def _anonymous(section: Section) -> UserName | None:
    text = section.text("anonymous")
    if not text:
        return None if text is None else UserName("")
    return section.attempt("anonymous", lambda: parse_user_name(text), default=None)


def _arvados_api(section: Section) -> str | None:
    text = section.text("arvados_api")
    if text:
        check_url(section, "arvados_api", text)
    return text and text.rstrip("/")


def _rules(section: Section) -> Mapping[str, RetentionPatch] | None:
    if section.fields.get("rules") is None:
        return None
    rules = section.section("rules")
    if len(rules.fields) > MAXIMUM_RULES:
        section.problem("rules", f"expected {MAXIMUM_RULES} at most, not {len(rules.fields)}")
    for prefix in rules.fields:
        problem = short_string_problem(prefix)
        if problem or not prefix.isprintable():
            section.problem("rules", f"prefix {shown(prefix)} {problem or 'has unprintable characters'}")
    return {prefix: _retention(rules.section(prefix)) for prefix in rules.fields}


def _retention(section: Section) -> RetentionPatch:
    section.refuse_unknown(RETENTION_FIELDS)
    count, age = section.whole_number("count"), section.whole_number("age_seconds")
    for name, number, most in (("count", count, MAXIMUM_COUNT), ("age_seconds", age, MAXIMUM_AGE_SECONDS)):
        if number is not None and number > most:
            section.problem(name, f"expected 1 to {most}, or 0 for no limit, not {shown(number)}")
            return RetentionPatch()
    return RetentionPatch(count, None if age is None else timedelta(seconds=age))
