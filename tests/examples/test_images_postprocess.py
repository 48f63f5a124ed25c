"""examples/images/postprocess without a GPU: the reference of NMS, deciding a tile in turns, and decoding."""

import numpy as np
import pytest

from cudatut.book.images.postprocess import reference


def serially(gone, earlier):
    stay = np.zeros(len(gone), bool)
    for i in range(len(gone)):
        stay[i] = not gone[i] and not (earlier[i] & stay).any()
    return stay


@pytest.mark.parametrize("density", [0, 0.01, 0.05, 0.3, 1])
def test_deciding_in_turns_is_deciding_one_by_one(density):
    for seed in range(20):
        chance = np.random.default_rng(seed)
        earlier = np.tril(chance.random((64, 64)) < density, -1)
        gone = chance.random(64) < 0.2
        stay, turns = reference.decide(gone, earlier)
        assert (stay == serially(gone, earlier)).all() and turns <= 64


def test_a_chain_takes_a_turn_for_every_other_box():
    stay, turns = reference.decide(np.zeros(64, bool), np.eye(64, k=-1, dtype=bool))
    assert stay.tolist() == [True, False] * 32 and turns == 32


def test_nms_keeps_the_better_of_two_and_equal_scores_by_index():
    boxes = np.array([[0, 0, 2, 2], [0, 0, 2, 2], [5, 5, 6, 6]], "float32")
    assert reference.nms(boxes, np.array([0.5, 0.9, 0.1], "float32")).tolist() == [1, 2]
    assert reference.nms(boxes, np.array([0.5, 0.5, 0.5], "float32")).tolist() == [0, 2]
    assert reference.nms(boxes, np.array([0.5, 0.9, np.nan], "float32")).tolist() == [1]
    assert reference.nms(boxes, np.ones(3, "float32"), classes=np.array([0, 1, 1])).tolist() == [
        0,
        1,
        2,
    ]


def test_decoding_undoes_the_letterbox():
    out = np.array([[20.0], [30.0], [10.0], [8.0], [-1.0], [2.0]])
    boxes, scores, classes = reference.decode(out, 0.5, 4, 6, 100, 100)
    assert boxes.tolist() == [[22, 40, 42, 56]] and classes.tolist() == [1]
    assert scores[0] == pytest.approx(1 / (1 + np.exp(-2)))
