"""Condition expressions of DynamoDB, in the words of boto3, whose import would slow down every cold start."""

from collections.abc import Iterable
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition; each `{}` in `form` is the place of an operand: an attribute, a value or another condition."""

    form: str
    operands: tuple[object, ...]

    def __and__(self, other: "Condition") -> "Condition":
        return Condition("({} AND {})", (self, other))

    def __or__(self, other: "Condition") -> "Condition":
        return Condition("({} OR {})", (self, other))


@dataclass(frozen=True, slots=True)
class Attr:
    """An attribute of an item, at its top level."""

    name: str

    def eq(self, value: object) -> Condition:
        """Return the condition that the attribute has this value."""
        return Condition("{} = {}", (self, value))

    def lte(self, value: object) -> Condition:
        """Return the condition that the attribute is at most this value."""
        return Condition("{} <= {}", (self, value))

    def gt(self, value: object) -> Condition:
        """Return the condition that the attribute is greater than this value."""
        return Condition("{} > {}", (self, value))

    def between(self, low: object, high: object) -> Condition:
        """Return the condition that the attribute is in a range, both ends included."""
        return Condition("{} BETWEEN {} AND {}", (self, low, high))

    def is_in(self, values: Iterable[object]) -> Condition:
        """Return the condition that the attribute has one of these values."""
        chosen = tuple(values)
        return Condition(f"{{}} IN ({', '.join(['{}'] * len(chosen))})", (self, *chosen))

    def not_exists(self) -> Condition:
        """Return the condition that the item, if it exists, does not have the attribute."""
        return Condition("attribute_not_exists({})", (self,))


Key = Attr  # an attribute of a key, in the condition of a query


@dataclass(slots=True)
class Placeholders:
    """The names and values of an expression, which DynamoDB receives apart from its text."""

    names: dict[str, str] = field(default_factory=dict)
    values: dict[str, object] = field(default_factory=dict)

    def text(self, condition: Condition) -> str:
        """Return the text of a condition, with placeholders for its names and values."""
        return condition.form.format(*map(self._operand, condition.operands))

    def _operand(self, operand: object) -> str:
        if isinstance(operand, Condition):
            return self.text(operand)
        if isinstance(operand, Attr):
            placeholder = f"#c{len(self.names)}"
            self.names[placeholder] = operand.name
            return placeholder
        placeholder = f":c{len(self.values)}"
        self.values[placeholder] = operand
        return placeholder
