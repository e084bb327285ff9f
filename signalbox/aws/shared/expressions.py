"""Expressions and writes of DynamoDB: boto3's own conditions would slow down every cold start with their import."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

Item = dict[str, Any]  # values: str, bytes, bool, None, int and Decimal, and lists, maps and sets of them


@dataclass(frozen=True, slots=True)
class Expression:
    """A condition, or a value that DynamoDB computes; each `{}` in `form` is the place of an operand.

    An operand is another expression, the name of an attribute, or a value.
    """

    form: str
    operands: tuple[object, ...]

    def __and__(self, other: "Expression") -> "Expression":
        return Expression("({} AND {})", (self, other))

    def __or__(self, other: "Expression") -> "Expression":
        return Expression("({} OR {})", (self, other))

    def __add__(self, number: object) -> "Expression":
        return Expression("{} + {}", (self, number))

    def eq(self, value: object) -> "Expression":
        """Return the condition that this is equal to a value."""
        return Expression("{} = {}", (self, value))

    def lt(self, value: object) -> "Expression":
        """Return the condition that this is less than a value."""
        return Expression("{} < {}", (self, value))

    def lte(self, value: object) -> "Expression":
        """Return the condition that this is at most a value."""
        return Expression("{} <= {}", (self, value))

    def gt(self, value: object) -> "Expression":
        """Return the condition that this is greater than a value."""
        return Expression("{} > {}", (self, value))

    def gte(self, value: object) -> "Expression":
        """Return the condition that this is at least a value."""
        return Expression("{} >= {}", (self, value))

    def between(self, low: object, high: object) -> "Expression":
        """Return the condition that this is in a range, both ends included."""
        return Expression("{} BETWEEN {} AND {}", (self, low, high))

    def begins_with(self, prefix: str) -> "Expression":
        """Return the condition that this text has a prefix."""
        return Expression("begins_with({}, {})", (self, prefix))

    def is_in(self, values: Iterable[object]) -> "Expression":
        """Return the condition that this is equal to one of the values."""
        chosen = tuple(values)
        return Expression(f"{{}} IN ({', '.join(['{}'] * len(chosen))})", (self, *chosen))

    def exists(self) -> "Expression":
        """Return the condition that the item exists and has this attribute."""
        return Expression("attribute_exists({})", (self,))

    def not_exists(self) -> "Expression":
        """Return the condition that the item, if it exists, does not have this attribute."""
        return Expression("attribute_not_exists({})", (self,))

    def size(self) -> "Expression":
        """Return the length of this text, list or set."""
        return Expression("size({})", (self,))

    def at(self, index: int) -> "Expression":
        """Return an element of this list."""
        return Expression(f"{{}}[{index}]", (self,))

    def otherwise(self, value: object) -> "Expression":
        """Return the value of this attribute, or `value` if the item does not have it."""
        return Expression("if_not_exists({}, {})", (self, value))

    def extended(self, values: Sequence[object]) -> "Expression":
        """Return this list with more elements at its end."""
        return Expression("list_append({}, {})", (self, list(values)))


@dataclass(frozen=True, slots=True)
class _Name:
    text: str


def attr(name: str) -> Expression:
    """Return the attribute of an item, at its top level."""
    return Expression("{}", (_Name(name),))


IS_NEW, EXISTS = attr("pk").not_exists(), attr("pk").exists()


@dataclass(slots=True)
class Placeholders:
    """The names and values of expressions, which DynamoDB receives apart from their texts."""

    names: dict[str, str] = field(default_factory=dict)
    values: dict[str, object] = field(default_factory=dict)

    def text(self, expression: Expression) -> str:
        """Return the text of an expression, with placeholders for its names and values."""
        return expression.form.format(*map(self.operand, expression.operands))

    def operand(self, operand: object) -> str:
        """Return the text of an expression, or the placeholder of a name or of a value."""
        if isinstance(operand, Expression):
            return self.text(operand)
        if isinstance(operand, _Name):
            return self.names.setdefault(operand.text, f"#n{len(self.names)}")
        placeholder = f":v{len(self.values)}"
        self.values[placeholder] = operand
        return placeholder


@dataclass(frozen=True, slots=True)
class Put:
    """The storage of an item, which replaces an older one."""

    operation: ClassVar[str] = "Put"

    item: Item
    condition: Expression | None = None


@dataclass(frozen=True, slots=True)
class Delete:
    """The deletion of an item, if it exists."""

    operation: ClassVar[str] = "Delete"

    key: Item
    condition: Expression | None = None


@dataclass(frozen=True, slots=True)
class Update:
    """A change of an item, or of an empty one if it does not exist.

    `sets` has new values, `adds` numbers to add or sets to join, `removes` attributes or elements of lists, and
    `takes` sets whose elements are deleted from sets.
    """

    operation: ClassVar[str] = "Update"

    key: Item
    sets: Mapping[str, object] = field(default_factory=dict)
    adds: Mapping[str, object] = field(default_factory=dict)
    removes: Sequence[Expression] = ()
    takes: Mapping[str, object] = field(default_factory=dict)
    condition: Expression | None = None

    def text(self, placeholders: Placeholders) -> str:
        """Return the update expression."""
        clauses = {
            "SET": [Expression("{} = {}", (attr(name), value)) for name, value in self.sets.items()],
            "REMOVE": self.removes,
            "ADD": [Expression("{} {}", (attr(name), value)) for name, value in self.adds.items()],
            "DELETE": [Expression("{} {}", (attr(name), value)) for name, value in self.takes.items()],
        }
        texts = {clause: ", ".join(map(placeholders.text, parts)) for clause, parts in clauses.items() if parts}
        return " ".join(f"{clause} {text}" for clause, text in texts.items())


@dataclass(frozen=True, slots=True)
class Check:
    """A condition of a transaction on an item that the transaction does not write."""

    operation: ClassVar[str] = "ConditionCheck"

    key: Item
    condition: Expression


Write = Put | Delete | Update | Check
