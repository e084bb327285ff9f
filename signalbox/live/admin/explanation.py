"""Why a user may or may not read or write a topic: which role, ownership, grant or deny decides, and why not others."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from signalbox.exchange.model.topics import RoutingKey, is_reserved
from signalbox.live.admin.rights_sources import RightsSources
from signalbox.live.rights.coverage import matches
from signalbox.live.rights.grants import Grant, GrantSet
from signalbox.live.rights.principals import EVERYONE, GROUP_MARK, PrincipalName, Subject, principal_of
from signalbox.sarracenia.rights.permissions import Right, Role, is_permitted, role_rights

MAXIMUM_REASONS = 200  # in one answer


class ReasonEffect(StrEnum):
    """The effect of a role, an ownership, a grant or a deny on a topic."""

    PERMITS = "permits"
    REFUSES = "refuses"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Reason:
    """One role, ownership, grant or deny; `principal` and `grant` are those of a grant or deny."""

    kind: str
    effect: ReasonEffect
    why: str
    principal: PrincipalName | None = None
    grant: Grant | None = None

    def document(self) -> dict[str, object]:
        """Return the reason as a JSON object."""
        fields: dict[str, object] = {"kind": self.kind, "effect": self.effect.value, "why": self.why}
        if self.grant is not None:
            pattern = self.grant.pattern
            fields |= {"user": self.principal, "right": self.grant.right.value}
            fields |= {"match": pattern.match.value, "uri": pattern.uri}
        return fields


def explanation(sources: RightsSources, right: Right, topic: RoutingKey) -> dict[str, object]:
    """Return whether a user has a right to a topic, and the reasons, with those that have an effect first."""
    reasons = sorted(_reasons(sources, right, topic), key=lambda reason: reason.effect is ReasonEffect.NONE)
    rights = sources.rights
    is_permitted_now = rights.may_receive(topic) if right is Right.READ else rights.may_publish(topic)
    return {
        "user": sources.user,
        "exchange": sources.realm,
        "topic": topic,
        "right": right.value,
        "permitted": is_permitted_now,
        "groups": sorted(sources.groups),
        "reasons": [reason.document() for reason in reasons[:MAXIMUM_REASONS]],
        "more": max(0, len(reasons) - MAXIMUM_REASONS),
    }


def _reasons(sources: RightsSources, right: Right, topic: RoutingKey) -> Iterator[Reason]:
    yield _by_role(sources, right, topic)
    yield _by_ownership(sources, right, topic)
    yield from _of_principal(sources, PrincipalName(sources.user), sources.own, right, topic)
    for principal, granted in sorted(sources.group_grants.by_principal.items()):
        yield from _of_principal(sources, principal, granted, right, topic)


def _by_role(sources: RightsSources, right: Right, topic: RoutingKey) -> Reason:
    role, realm = sources.role, sources.realm
    if right not in role_rights(role, realm):
        return Reason("role", ReasonEffect.NONE, f"the role {role} gives no right to {right} {realm}")
    return _unless_reserved(sources, topic, "role", f"the role {role} may {right} {realm}")


def _by_ownership(sources: RightsSources, right: Right, topic: RoutingKey) -> Reason:
    if sources.is_token:
        return Reason("ownership", ReasonEffect.NONE, "the user of an identity provider owns no exchange by name")
    owns = right not in role_rights(sources.role, sources.realm) and is_permitted(
        sources.user, sources.role, right, name=sources.realm, ownership=sources.ownership
    )
    if not owns:
        return Reason(
            "ownership", ReasonEffect.NONE, f"the name of {sources.realm} gives {sources.user} no right to {right}"
        )
    return _unless_reserved(sources, topic, "ownership", f"{sources.realm} is the user's own by its name")


def _unless_reserved(sources: RightsSources, topic: RoutingKey, kind: str, why: str) -> Reason:
    if is_reserved(topic) and (sources.role is not Role.ADMIN or sources.is_token):
        return Reason(kind, ReasonEffect.NONE, "topics of WAMP need a grant whose pattern begins with wamp")
    return Reason(kind, ReasonEffect.PERMITS, why)


def _of_principal(
    sources: RightsSources, principal: PrincipalName, granted: GrantSet, right: Right, topic: RoutingKey
) -> Iterator[Reason]:
    is_concerned = _is_concerned(sources, principal)
    subject = Subject.of(sources.user, sources.groups)
    for kind, effect, grants in (
        ("grant", ReasonEffect.PERMITS, granted.grants),
        ("deny", ReasonEffect.REFUSES, granted.denies),
    ):
        for grant in grants:
            missing = _missing(grant, right, topic, subject, kind)
            if not is_concerned and missing:
                continue  # of the groups of others, only what membership would change
            why = missing or (f"the {kind} of {principal} matches the topic" if is_concerned else _absence(principal))
            yield Reason(kind, ReasonEffect.NONE if missing or not is_concerned else effect, why, principal, grant)


def _is_concerned(sources: RightsSources, principal: PrincipalName) -> bool:
    is_group = principal.startswith(GROUP_MARK)
    return principal == EVERYONE or not is_group or principal in {principal_of(group) for group in sources.groups}


def _absence(principal: PrincipalName) -> str:
    return f"the user is not in the group {principal.removeprefix(GROUP_MARK)}"


def _missing(grant: Grant, right: Right, topic: RoutingKey, subject: Subject, kind: str) -> str:
    """Return why a grant or deny does not apply to a topic; an empty text if it does."""
    if grant.right is not right:
        return f"it is a {kind} to {grant.right}"
    if not matches(grant.pattern, topic, subject):
        return "its pattern does not match the topic"
    if kind == "grant" and is_reserved(topic) and not is_reserved(grant.pattern.uri):
        return "topics of WAMP need a grant whose pattern begins with wamp"
    return ""
