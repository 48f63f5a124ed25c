"""JSON read by annotations: what fits, and how a message names what does not."""

from dataclasses import dataclass, field
from typing import Annotated, NotRequired, TypedDict

import pytest

from cudatut.schema import LARGEST_INTEGER, Count, Misfit, reader, short


@dataclass
class Row:
    name: str
    values: list[tuple[int, float]]
    note: Annotated[str, "label"] | None = None


@dataclass
class Sheet:
    rows: list[Row]
    named: dict[str, float | bool]


GOOD = {"rows": [{"name": "a", "values": [[1, 2.5], [3, 4]]}], "named": {"x": 1, "y": True}}


def test_dataclasses_are_made_and_the_rest_stays():
    found = reader(Sheet)(GOOD | {"unknown": "left alone"})
    assert found == Sheet([Row("a", [(1, 2.5), (3, 4)], None)], {"x": 1, "y": True})


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"rows": {}}, "rows is {}"),
        ({"rows": [{"name": "a"}]}, "rows['a'].values is missing"),
        ({"rows": [GOOD["rows"][0], 3]}, "rows[1] is 3"),
        ({"rows": [{"name": "a", "values": [[1, 2.5], [1]]}]}, "rows['a'].values[1] is [1]"),
        (
            {"rows": [{"name": "a", "values": [[1.5, 2.5]]}]},
            "rows['a'].values[0][0] is 1.5",
        ),
        ({"rows": [{"name": "a", "values": [], "note": 1}]}, "rows['a'].note is 1"),
        ({"named": {"x": float("nan")}}, "named['x'] is nan"),
        ({"named": {"x": "1"}}, "named['x'] is '1'"),
        ({"named": {1: 1.0}}, "named[1] is 1"),
        ({"named": {"x": LARGEST_INTEGER}}, f"named['x'] is {LARGEST_INTEGER}"),
    ],
)
def test_what_does_not_fit_is_named_by_its_path(change, said):
    with pytest.raises(Misfit) as caught:
        reader(Sheet)(GOOD | change)
    assert str(caught.value) == said


Even = Annotated[int, lambda number: number % 2 == 0]
Pair = TypedDict("Pair", {"from": Even, "to": NotRequired[Even | None]})
Pairs = dict[Annotated[str, str.islower], list[Pair]]


def test_a_dictionary_stays_one_and_its_values_obey_their_rules():
    assert reader(Pairs)({"a": [{"from": 2, "to": None}, {"from": 4}], "b": []}) == {
        "a": [{"from": 2, "to": None}, {"from": 4}],
        "b": [],
    }


@pytest.mark.parametrize(
    ("pairs", "said"),
    [
        ({"a": [], "B": []}, "['B'] is 'B'"),
        ({"a": [{}]}, "['a'][0].from is missing"),
        ({"a": [{"from": 2}, {"from": 3}]}, "['a'][1].from is 3"),
        ({"a": [{"from": 2, "to": 3}]}, "['a'][0].to is 3"),
        ({"a": {"from": 2}}, "['a'] is {'from': 2}"),
        ({"a": [{"from": "2"}]}, "['a'][0].from is '2'"),
    ],
)
def test_what_breaks_a_rule_is_named_by_its_path(pairs, said):
    with pytest.raises(Misfit) as caught:
        reader(Pairs)(pairs)
    assert str(caught.value) == said


def test_what_has_a_default_may_be_absent():
    @dataclass
    class Note:
        text: str
        size: int = 3
        words: list[str] = field(default_factory=list)

    assert reader(Note)({"text": "a"}) == Note("a", 3, [])
    with pytest.raises(Misfit, match="text is missing"):
        reader(Note)({"size": 3, "words": []})


def test_true_is_no_number():
    assert reader(bool)(True) is True
    for kind in (int, float):
        with pytest.raises(Misfit, match="is True"):
            reader(kind)(True)
    assert reader(int)(LARGEST_INTEGER - 1) == LARGEST_INTEGER - 1


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("x" * 58, repr("x" * 58)),  # 60 with its quotes
        ("x" * 59, "'" + "x" * 56 + "..."),
        ([], "[]"),
    ],
)
def test_a_value_in_a_message_has_an_end(value, shown):
    assert short(value) == shown


def test_a_count_is_at_least_one():
    assert reader(Count)(1) == 1
    for wrong in (0, -1, 1.0):
        with pytest.raises(Misfit, match=f"is {wrong}"):
            reader(Count)(wrong)


def test_an_empty_value_may_obey_its_rule():
    """Only the rule is asked whether it is true, not the value."""
    assert reader(Annotated[int, lambda number: number <= 0])(0) == 0
    assert reader(Annotated[str, "label", lambda text: len(text) < 2])("") == ""
    with pytest.raises(Misfit):
        reader(Annotated[int, lambda number: number < 9, lambda number: number > 2])(1)


def test_lists_are_lists_and_integers_are_numbers():
    assert reader(list[float])((1, 2.5)) == [1, 2.5]
    assert reader(tuple[int, str])([1, "a"]) == (1, "a")
    for kind in (list[int], tuple[int, str], dict[str, int], Sheet, Pair):
        for wrong in (3, "ab", None):
            with pytest.raises(Misfit):
                reader(kind)(wrong)
    with pytest.raises(Misfit, match=r"\[1\] is 2"):
        reader(tuple[int, str])([1, 2])
    with pytest.raises(Misfit, match=r"\['a'\] is 2"):
        reader(dict[str, str])({"a": 2})
    for number in (-LARGEST_INTEGER, LARGEST_INTEGER, float("-inf"), 1j):
        with pytest.raises(Misfit):
            reader(float)(number)
    assert reader(int | str | None)("a") == "a" and reader(int | None)(None) is None
