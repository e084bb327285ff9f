"""Forms of values in documents that only Signalbox writes, such as JSON records and items of DynamoDB.

A form follows from the type: a dataclass is an object of its fields, an enum its value, a collection a list or object
of its parts. A document that people write is read with `signalbox.documents`, which reports all problems.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from enum import Enum
from functools import cached_property, reduce
from operator import attrgetter, or_
from types import MappingProxyType, NoneType, UnionType
from typing import Any, Generic, NewType, TypeAlias, TypeVar, Union, get_args, get_origin, get_type_hints

Value = TypeVar("Value")
Document = Mapping[str, Any]
Kind = Any  # an annotation: a class, a NewType, a union or a collection
AnyForm: TypeAlias = "Form | Record[Any]"

NO_NAMES: Mapping[str, str] = MappingProxyType({})


class Form:
    """The written form of the values of a type.

    It is no dataclass, and neither are the other classes here: making one takes as long as importing this module.
    """

    __slots__ = ("read", "write")

    def __init__(self, write: Callable[[Any], Any], read: Callable[[Any], Any]) -> None:
        self.write, self.read = write, read


AS_IT_IS = Form(lambda value: value, lambda written: written)


class Forms:
    """The forms of one kind of document: those that are defined, and those that follow from them."""

    def __init__(self, defined: Mapping[Kind, AnyForm]) -> None:
        self._forms: dict[Kind, AnyForm] = dict(defined)

    def of(self, kind: Kind) -> AnyForm:
        """Return the form of a type, which is derived at its first use."""
        if kind not in self._forms:
            self._forms[kind] = self._derived(kind)
        return self._forms[kind]

    def define(self, kind: Kind, form: AnyForm) -> None:
        """Define the form of a type."""
        self._forms[kind] = form

    def record(
        self,
        kind: type[Value],
        *,
        names: Mapping[str, str] = NO_NAMES,
        sparse: Collection[str] = (),
        flat: Collection[str] = (),
        order: Iterable[str] = (),
    ) -> "Record[Value]":
        """Define the form of a dataclass as an object, in which fields have the `names` that are given.

        A `sparse` field is left out if its value is the default, which is None for a field without one. The form of a
        `flat` field is merged into the object. The fields in `order` come first.
        """
        record = Record(kind, self, names=names, sparse=sparse, flat=flat, order=order)
        self.define(kind, record)
        return record

    def row(self, kind: type[Value]) -> Form:
        """Define the form of a dataclass as a list of its fields, which are written as they are."""
        columns = attrgetter(*(field.name for field in fields(kind)))  # type: ignore[arg-type]  # a dataclass
        row = Form(lambda value: list(columns(value)), lambda written: kind(*written))
        self.define(kind, row)
        return row

    def _derived(self, kind: Kind) -> AnyForm:
        origin: Kind = get_origin(kind)
        parts = get_args(kind)
        if isinstance(kind, NewType):
            return self.of(kind.__supertype__)
        if isinstance(kind, type) and issubclass(kind, Enum):
            return Form(attrgetter("value"), kind)
        if is_dataclass(kind):
            return self.record(kind)  # type: ignore[arg-type]  # a class
        if origin in (Union, UnionType) and NoneType in parts:
            return _optional(self.of(reduce(or_, (part for part in parts if part is not NoneType))))
        return self._collection(origin, parts)

    def _collection(self, origin: Kind, parts: tuple[Kind, ...]) -> Form:
        if origin is tuple:
            return _listed(self.of(parts[0]), list, tuple)
        if origin is frozenset:
            return _listed(self.of(parts[0]), sorted, frozenset)
        if origin is Mapping:
            return _object(self.of(parts[0]), self.of(parts[1]))
        return AS_IT_IS


class Record(Generic[Value]):
    """The form of a dataclass as an object; see `Forms.record`."""

    def __init__(
        self,
        kind: type[Value],
        forms: Forms,
        *,
        names: Mapping[str, str],
        sparse: Collection[str],
        flat: Collection[str],
        order: Iterable[str],
    ) -> None:
        self.kind = kind
        self._forms, self._names, self._sparse, self._flat, self._order = forms, names, sparse, flat, order

    def write(self, value: Value, /) -> dict[str, Any]:
        """Return the object of a value."""
        document: dict[str, Any] = {}
        for attribute, name, form, default in self._fields:
            found = getattr(value, attribute)
            if name is None:
                document.update(form.write(found))
            elif default is None or found != default():
                document[name] = form.write(found)
        return document

    def read(self, document: Document, /) -> Value:
        """Return the value of an object. Raises `KeyError`, or what reading a field raises."""
        values = {}
        for attribute, name, form, default in self._fields:
            if default is not None and name not in document:
                values[attribute] = default()
            else:
                values[attribute] = form.read(document if name is None else document[name])
        return self.kind(**values)

    @cached_property
    def _fields(self) -> "tuple[_Field, ...]":
        types = get_type_hints(self.kind)
        by_name = {field.name: field for field in fields(self.kind)}  # type: ignore[arg-type]  # a dataclass
        return tuple(
            (
                name,
                None if name in self._flat else self._names.get(name, name),
                self._forms.of(types[name]),
                _default_of(by_name[name]) if name in self._sparse else None,
            )
            for name in dict.fromkeys((*self._order, *by_name))
        )


# The name of the attribute and that in the object, which a flat field has not; and what a sparse field's default is.
_Field = tuple[str, str | None, AnyForm, Callable[[], Any] | None]


def tagged(tag: str, records: Mapping[str, Record[Any]]) -> Form:
    """Return the form of a union of dataclasses: their objects, with the record's name in the field `tag`."""
    names = {record.kind: name for name, record in records.items()}

    def write(value: object) -> dict[str, Any]:
        name = names[type(value)]
        return {tag: name, **records[name].write(value)}

    return Form(write, lambda document: records[document[tag]].read(document))


def _default_of(field: "Field[Any]") -> Callable[[], Any]:
    if field.default_factory is not MISSING:
        return field.default_factory
    default = None if field.default is MISSING else field.default
    return lambda: default


def _optional(form: AnyForm) -> Form:
    if form is AS_IT_IS:
        return form

    def applied(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
        return lambda value: None if value is None else function(value)

    return Form(applied(form.write), applied(form.read))


def _listed(form: AnyForm, to_list: Callable[[Iterable[Any]], list[Any]], to_values: Callable[[Any], Any]) -> Form:
    if form is AS_IT_IS:
        return Form(to_list, to_values)
    write, read = form.write, form.read
    return Form(lambda values: to_list(map(write, values)), lambda written: to_values(map(read, written)))


def _object(key: AnyForm, value: AnyForm) -> Form:
    if key is value is AS_IT_IS:
        return Form(dict, dict)
    return Form(
        lambda values: {key.write(name): value.write(one) for name, one in values.items()},
        lambda written: {key.read(name): value.read(one) for name, one in written.items()},
    )
