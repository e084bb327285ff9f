"""Problems of documents."""

import pytest

from signalbox.documents import MAXIMUM_PROBLEM_LENGTH, MAXIMUM_PROBLEMS, Problems, Section
from signalbox.errors import RejectedError


def test_a_document_with_any_number_of_wrong_values_has_the_first_problems_once():
    problems = Problems()
    section = Section.of({"names": [1] * 65_000}, "details", problems)

    for _ in range(2):
        section.texts("names")

    assert len(problems.found) == MAXIMUM_PROBLEMS
    with pytest.raises(RejectedError, match=r"details.names\[0\]"):
        problems.refuse(RejectedError)


def test_a_problem_of_an_unknown_field_of_any_length_is_cut():
    problems = Problems()

    Section.of({"x" * 600_000: 1}, "", problems).refuse_unknown(())

    assert [len(one) for one in problems.found] == [MAXIMUM_PROBLEM_LENGTH]
