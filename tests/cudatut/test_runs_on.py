"""What runs where: names of cards for a compute capability, and what a notebook asks Colab for."""

import pytest

from cudatut import runs_on
from cudatut.gpu.device import supports


@pytest.mark.parametrize(
    ("requires", "cards", "colab"),
    [
        ("sm_75", ["T4", "RTX 20"], "T4"),
        ("sm_80", ["A100", "L4", "RTX 30"], "L4"),
        ("sm_89", ["H100", "L4", "RTX 40"], "L4"),
        ("sm_90", ["H100", "RTX 50"], "H100"),
        ("sm_90a", ["H100", "H200"], "H100"),
        ("sm_100a", ["B200"], None),
        ("sm_120", ["RTX 50"], None),
    ],
)
def test_cards_and_colab(requires, cards, colab):
    assert runs_on.cards(requires) == cards
    assert runs_on.colab(requires) == colab
    assert runs_on.notebook_metadata(requires)["colab"] == ({"gpuType": colab} if colab else {})


@pytest.mark.parametrize("requires", ["", "sm_", "7.5", "sm_90b", "sm_75 "])
def test_what_is_no_compute_capability(requires):
    for asked in (runs_on.capability, runs_on.cards, runs_on.colab):
        with pytest.raises(ValueError, match="sm_"):
            asked(requires)


def test_every_card_of_colab_is_able_where_it_is_asked_for():
    for requires in ("sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_90a"):
        assert supports(runs_on.COLAB[runs_on.colab(requires)], requires)


def test_a_card_has_one_capability_and_the_cheapest_of_colab_is_the_free_one():
    kinds = (runs_on.DATA_CENTER, runs_on.GEFORCE, runs_on.COLAB)
    said = {(name, has) for kind in kinds for name, has in kind.items()}
    assert len(said) == len({name for name, _ in said})
    assert next(iter(runs_on.COLAB)) == runs_on.FREE
    for kind in (runs_on.DATA_CENTER, runs_on.GEFORCE):  # `cards` takes the first for the oldest
        assert list(kind.values()) == sorted(kind.values())


@pytest.mark.parametrize(
    ("exactly", "cards"),
    [
        ("sm_75a", ["T4", "RTX 20"]),
        ("sm_80a", ["A100"]),
        ("sm_86a", ["RTX 30"]),
        ("sm_89a", ["RTX 40"]),
        ("sm_90a", ["H100", "H200"]),
        ("sm_100a", ["B200"]),
        ("sm_120a", ["RTX 50"]),
    ],
)
def test_the_cards_of_a_capability_alone(exactly, cards):
    """As NVIDIA's list has them; of what is exact, no newer card will do."""
    assert runs_on.cards(exactly) == cards
    assert runs_on.capability(exactly) == (f"{exactly[3:-2]}.{exactly[-2]}", True)
    assert runs_on.capability(exactly[:-1]) == (f"{exactly[3:-2]}.{exactly[-2]}", False)
    assert runs_on.colab(exactly) == {"89": "L4"}.get(exactly[3:-1], next((card for card in cards if card in runs_on.COLAB), None))  # fmt: skip


def test_a_notebook_says_by_what_it_is_run():
    """The form of nbformat and Colab: the kernel `python3`, and a GPU."""
    assert runs_on.notebook_metadata("sm_75") == {
        "kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"},
        "language_info": {"name": "python"},
        "accelerator": "GPU",
        "colab": {"gpuType": "T4"},
    }
