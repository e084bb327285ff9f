"""`signalbox grant add --dry-run --over`: the past messages that a grant or deny matches, and who had seen them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from signalbox.cli.history.what_if import (
    Past,
    draw,
    figures_of,
    history_of,
    print_messages,
    sentences,
    size_text,
)
from signalbox.cli.shared.output import print_line, print_table
from signalbox.sarracenia.rights.permissions import Right

if TYPE_CHECKING:
    from signalbox.history.what_if.cost import Cost
    from signalbox.history.what_if.past_messages import PastMessages
    from signalbox.history.what_if.viewers import Viewer

MAXIMUM_TOPICS = 200  # of a dry run's command
LISTED = 20
# The delivery of an event to a connection, in a batch of its own at most, and its event.
ACTIONS = (("live", "delivery"), ("live", "posted event"), ("history", "event"))


@dataclass(frozen=True, slots=True)
class PastGrant:
    """The past messages that a grant or deny matches; `checked` are the topics whose rights the dry run shows."""

    fields: Mapping[str, Any]
    past: Past
    found: "PastMessages"
    checked: tuple[str, ...]

    @classmethod
    def of(cls, fields: Mapping[str, Any], past: Past, *, aws: bool, stage: str) -> "PastGrant":
        """Read the past messages for the fields of the command."""
        from signalbox.aws.history.past_messages import Selection
        from signalbox.live.admin.principals import parse_principal
        from signalbox.live.admin.regexes import grant_regex
        from signalbox.live.wamp.patterns import MatchPolicy, TopicPattern

        pattern = TopicPattern(MatchPolicy(fields["match"]), fields["uri"])
        selection = Selection(
            fields["exchange"],
            grant_regex(pattern, parse_principal(fields["user"])),
            by_publisher=fields["right"] == Right.WRITE,
            is_realm=True,
        )
        found = history_of(aws=aws, stage=stage).matching(selection, past.window)
        return cls(fields, past, found, tuple(dict.fromkeys(one.name for one in found.topics))[:MAXIMUM_TOPICS])

    def viewers(self, result: Mapping[str, Any]) -> "list[Viewer]":
        """Return the users in the result of the dry run."""
        from signalbox.history.what_if.viewers import viewers

        visibility = result.get("visibility", ())
        return viewers(visibility, self.checked, self.found.topics, joined=self.found.joined)

    def show(self, result: Mapping[str, Any], *, as_json: bool) -> None:
        """Print the past messages and who had the right to them, unless as JSON; draw the picture."""
        seen, lines = self.viewers(result), self._lines(result)
        if not as_json:
            print_messages(self.past, self.found, self._what)
            if seen:
                print_table(["user", *self._heads, "sessions"], map(_row, seen[:LISTED]))
            for line in lines:
                print_line(line)
        draw(
            self.past,
            title=f"Rights of {self.fields['user']} in {self.fields['exchange']}",
            lines=[*sentences(self.past, self.found, self._what), *lines],
            figures=figures_of(self.found, self.cost(seen)),
            buckets=self.found.buckets,
            bars=(f"Messages that each {self._heads[1]}", ((one.user, one.after.messages) for one in seen)),
        )

    def document(self, result: Mapping[str, Any]) -> dict[str, object]:
        """Return the past and the users as fields of the result's JSON object."""
        from signalbox.history.what_if.rate import Rate

        seen = self.viewers(result)
        cost, rate = self.cost(seen), Rate.of(self.found.buckets, self.found.window).document()
        return {
            "past": {**self.found.document(), "rate": rate},
            "users": [one.document() for one in seen],
            "checked_topics": len(self.checked),
            "cost": None if cost is None else cost.document(),
        }

    def cost(self, seen: "list[Viewer]") -> "Cost | None":
        """Return the monthly cost if each user who gains messages were always connected and subscribed."""
        from signalbox.history.what_if.cost import monthly_cost
        from signalbox.history.what_if.past_messages import Amount

        if self.fields["right"] != Right.READ:
            return None
        gained = sum(max(0, one.gained) for one in seen)
        size_bytes = sum(max(0, one.after.size_bytes - one.before.size_bytes) for one in seen)
        amount = Amount(gained, size_bytes, gained)
        return monthly_cost(amount, ACTIONS, months=self.found.window.months)

    def _lines(self, result: Mapping[str, Any]) -> list[str]:
        """Return who would gain or lose messages, and what limits the answer, in words."""
        if not self.found.total.messages:
            return []
        seen = self.viewers(result)
        gain, lose = sum(one.gained > 0 for one in seen), sum(one.gained < 0 for one in seen)
        lines = [f"{gain} of {len(seen)} users would gain messages, {lose} would lose some"]
        others = int(result.get("more_users", 0)) + max(0, len(seen) - LISTED)
        if others:
            lines.append(f"and {others} more users")
        if len(self.checked) < self.found.topic_number:
            lines.append(f"rights were checked for the {len(self.checked)} topics with most messages")
        cost = self.cost(seen)
        if cost is not None and cost.most:
            lines.append(f"cost: {cost.sentence()} if each of them were always connected and subscribed")
        return lines

    @property
    def _heads(self) -> tuple[str, str]:
        verb = "see" if self.fields["right"] == Right.READ else "publish"
        return f"could {verb}", f"would {verb}"

    @property
    def _what(self) -> str:
        return f"{self.fields['match']} {self.fields['uri']!r} of {self.fields['exchange']}"


def _row(one: "Viewer") -> list[str]:
    amounts = (f"{amount.messages:,} ({size_text(amount.size_bytes)})" for amount in (one.before, one.after))
    return [one.user, *amounts, f"{one.sessions:,}"]
