"""examples/images/postprocess without a GPU: the reference of NMS, deciding a tile in turns, decoding, and the kernels in random
interleavings on a CPU (tests/tensor/hopper_on_cpu/). Faults that are planted must show."""

from pathlib import Path

import emulator
import numpy as np
import pytest

from cudatut.book.images.postprocess import reference

NMS, PROGRAM = "images/postprocess/nms.cu", Path(__file__).parent / "nms_on_cpu.cpp"
BOXES, TILES, AHEAD, TOGETHER = range(4)


def in_cpp(text):
    """Two axes of the grid, shared memory of other types, and a yield where a block reads what others say."""
    text = text.replace("blockIdx.y", "blocks_y").replace(
        "first = blockIdx.x * COL", "first = blocks_x * COL"
    )
    text = text.replace(
        "extern __shared__ Word removed[];",
        "Word* const removed = (Word*)machine::dynamic_shared(16);",
    )
    text = text.replace(
        "__shared__ Word removed, waits, open_now;",
        "__shared__ Word removed; __shared__ Word waits; __shared__ Word open_now;",
    )
    text = text.replace(
        "stay[k] = ask ? stay_of", 'machine::yield("others"); stay[k] = ask ? stay_of'
    )
    return "inline int blocks_x, blocks_y;\n" + text


def built(folder, change=lambda text: text, **defines):
    own = {"THREADS": 64, "EACH": 64, "COLUMNS": 2, "AT_ONCE": 2, **defines}
    macros = "".join(f"#define {name} {value}\n" for name, value in own.items())
    return emulator.built(folder, PROGRAM, NMS, lambda text: macros + in_cpp(change(text)), **own)


def kept(made, which, boxes, classes, limit=0.5, part=None, seed=1):
    """The boxes that stay, by a kernel; or what is wrong with its run."""
    n = len(boxes)
    numbers = (which, n, n if part is None else part, seed, round(1000 * limit))
    found, end = emulator.ended(made, numbers, boxes.tobytes() + classes.tobytes(), timeout=120)
    if end:
        return end
    count, *places = np.frombuffer(found, "i4").tolist()
    return places[:count] if set(places[count:]) <= {-1} else "more is written"


def cases():
    """Boxes in order, their classes, and how many take part."""
    for n, size in ((1, 20), (64, 400), (65, 400), (300, 300)):
        boxes, _ = reference.some_boxes(n, size=size, seed=n)
        yield boxes, np.zeros(n, "i4"), n
        yield boxes, np.arange(n, dtype="i4") % 3, n * 2 // 3
    chain = np.arange(200, dtype="f4")[:, None] + np.array([0, 0, 2.5, 1], "f4")
    yield (
        chain.astype("f4") * np.array([1, 0, 1, 0], "f4") + np.array([0, 0, 0, 1], "f4"),
        np.zeros(200, "i4"),
        200,
    )
    yield np.repeat(chain[:1], 150, 0).astype("f4"), np.zeros(150, "i4"), 150


def wrongly(made, which, limit=0.4):
    for boxes, classes, part in cases():
        best_first = np.linspace(1, 0, len(boxes)).astype("f4")
        wanted = reference.nms(
            boxes[:part], best_first[:part], limit, classes=classes[:part]
        ).tolist()
        found = kept(made, which, boxes, classes, limit, part)
        if found != wanted:
            return f"{len(boxes)} boxes, {part} take part: {found if isinstance(found, str) else 'others stay'}"
    return None


@pytest.mark.parametrize("which", [BOXES, TILES, AHEAD, TOGETHER])
def test_a_kernel_keeps_what_numpy_keeps(tmp_path, which):
    assert wrongly(built(tmp_path, BY_TILES=int(which == TOGETHER)), which) is None


def test_more_warps_and_other_steps(tmp_path):
    for k, how in enumerate(({"EACH": 256, "AT_ONCE": 4}, {"AT_ONCE": 1, "COLUMNS": 1})):
        (tmp_path / str(k)).mkdir()
        assert wrongly(built(tmp_path / str(k), BY_TILES=1, **how), TOGETHER) is None


@pytest.mark.parametrize("seed", range(2, 5))
def test_the_order_of_the_blocks_changes_nothing(tmp_path, seed):
    made, (boxes, _) = built(tmp_path, BY_TILES=1), reference.some_boxes(500, size=400, seed=3)
    one = kept(made, TOGETHER, boxes, np.zeros(500, "i4"), seed=1)
    assert isinstance(one, list) and one == kept(
        made, TOGETHER, boxes, np.zeros(500, "i4"), seed=seed
    )


FAULTS = {  # those after which a block waits for ever are left out
    "an undecided box counts as gone": (
        "(known >> lane & 1 ? 0 : words[k].low)",
        "(known >> lane & 1 ? 0 : 0)",
    ),
    "those who wait stay": ("~(stay | gone | not_yet);", "~(stay | gone);"),
    "what others say is asked once": (
        "if (!any && lane == 0 && t < tile)",
        "if (lane == 0 && t < tile)",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_shows(tmp_path, name):
    made = built(tmp_path, emulator.fault(*FAULTS[name]), BY_TILES=1)
    assert wrongly(made, TOGETHER) is not None


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
