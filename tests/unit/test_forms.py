"""Forms of values follow from their types, and reading is the inverse of writing."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import NewType, Optional

import pytest

from signalbox.forms import Form, Forms, tagged

AT = datetime(2026, 3, 1, 12, tzinfo=UTC)
Name = NewType("Name", str)
Number = NewType("Number", int)


class Color(StrEnum):
    RED = "red"


@dataclass(frozen=True, slots=True)
class Point:
    x: int
    y: int = 0


@dataclass(frozen=True, slots=True)
class Label:
    text: str = ""
    tags: frozenset[Name] = frozenset()


@dataclass(frozen=True, slots=True)
class Shape:
    name: Name
    color: Color
    made_at: datetime
    label: Label
    sold_at: datetime | None = None
    count: int | None = None
    ends: tuple[Point, ...] = ()
    words: tuple[str, ...] = ()
    middle: Optional[Point] = None  # noqa: UP045 - both spellings of a union
    times: Mapping[Number, datetime] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)
    is_old: bool = False


SHAPE = Shape(
    Name("a"),
    Color.RED,
    AT,
    Label("b", frozenset({Name("d"), Name("c")})),
    sold_at=AT,
    count=0,
    ends=(Point(1, 2),),
    words=("e",),
    middle=Point(3),
    times={Number(1): AT},
    texts={"f": "g"},
    is_old=True,
)
PLAIN = Shape(Name("a"), Color.RED, AT, Label())
TEXT = AT.isoformat()


def forms() -> Forms:
    found = Forms({datetime: Form(datetime.isoformat, datetime.fromisoformat), Number: Form(str, int)})
    found.row(Point)
    return found


def test_a_dataclass_is_an_object_of_its_fields():
    shape = forms().record(Shape)

    document = shape.write(SHAPE)

    assert document == {
        "name": "a",
        "color": "red",
        "made_at": TEXT,
        "label": {"text": "b", "tags": ["c", "d"]},
        "sold_at": TEXT,
        "count": 0,
        "ends": [[1, 2]],
        "words": ["e"],
        "middle": [3, 0],
        "times": {"1": TEXT},
        "texts": {"f": "g"},
        "is_old": True,
    }
    assert shape.read(json.loads(json.dumps(document))) == SHAPE


def test_an_object_has_other_names_another_order_and_no_field_with_its_default():
    sparse = ("sold_at", "count", "ends", "words", "middle", "times", "texts", "is_old")
    shape = forms().record(Shape, names={"is_old": "old", "made_at": "at"}, sparse=sparse, order=["made_at"])

    document = shape.write(PLAIN)

    assert list(document) == ["at", "name", "color", "label"]
    assert list(shape.write(SHAPE)) == ["at", "name", "color", "label", *sparse[:-1], "old"]
    assert [shape.read(shape.write(one)) for one in (PLAIN, SHAPE)] == [PLAIN, SHAPE]


def test_a_sparse_field_without_a_default_is_left_out_if_it_is_none():
    point = Forms({}).record(Point, sparse=["x"])

    assert point.write(Point(None)) == {"y": 0}
    assert point.read({"y": 1}) == Point(None, 1)


def test_a_flat_field_is_a_part_of_the_object():
    shape = forms().record(Shape, flat=["label"])

    document = shape.write(SHAPE)

    assert (document["text"], document["tags"]) == ("b", ["c", "d"])
    assert shape.read(document) == SHAPE


def test_a_union_is_read_by_the_tag():
    known = Forms({})
    union = tagged("is", {"point": known.record(Point), "label": known.record(Label)})

    assert union.write(Point(1)) == {"is": "point", "x": 1, "y": 0}
    assert [union.read(union.write(one)) for one in (Point(1), Label("a"))] == [Point(1), Label("a")]


def test_a_defined_form_is_used_for_a_collection():
    known = Forms({})
    known.define(tuple[Point, ...], Form(len, lambda count: (Point(0),) * count))

    assert known.record(Shape).write(SHAPE)["ends"] == 1


@pytest.mark.parametrize("missing", ["name", "count"])
def test_a_missing_field_is_an_error(missing):
    shape = forms().record(Shape)
    document = shape.write(SHAPE)
    del document[missing]

    with pytest.raises(KeyError, match=missing):
        shape.read(document)
