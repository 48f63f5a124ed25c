"""examples/images/postprocess: each way to decide on ragged counts against NumPy, decoding, and what is refused."""

import numpy as np
import pytest

import cudatut as ct
from cudatut.book.images.postprocess import postprocess, reference
from cudatut.book.images.postprocess.candidates import SCALE, candidates
from cudatut.book.images.postprocess.postprocess import WAYS, decode, nms

COUNTS = (1, 2, 31, 33, 63, 64, 65, 127, 129, 1000, 2049)


def kept(boxes, scores, limit=0.5, least=-np.inf, classes=None, **how):
    """What stays, twice: a run must not depend on the one before."""
    n = len(boxes)
    found, count = ct.empty(n, "int32"), ct.empty(1, "int32")
    own = None if classes is None else ct.to_device(classes)
    run = nms(ct.to_device(boxes), ct.to_device(scores), found, count, limit, least, own, **how)
    results = []
    for _ in range(2):
        ct.poison(found), ct.poison(count)
        run()
        results.append(found.get()[: int(count.get()[0])].tolist())
    assert results[0] == results[1]
    return results[0]


def judged(boxes, scores, *rest, **how):
    wanted = reference.nms(boxes, scores, *rest).tolist()
    assert kept(boxes, scores, *rest, **how) == wanted


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("size", [20, 100, 400])
def test_ragged_counts(way, size):
    for n in COUNTS:
        boxes, scores = reference.some_boxes(n, size=size, seed=n)
        scores[3::17] = np.nan
        scores[5::7] = scores[5::7].round(1)
        judged(boxes, scores, way=way)


@pytest.mark.parametrize("way", WAYS)
def test_classes_limits_and_low_scores(way):
    boxes, scores = reference.some_boxes(1500, size=300, seed=1)
    classes = ct.rng(2).integers(0, 5, 1500).astype("int32")
    judged(boxes, scores, 0.5, -np.inf, classes, way=way)
    judged(boxes, scores, 0.5, 0.5, way=way)
    judged(boxes, scores, 0.5, 2.0, way=way)
    for limit in (0.0, 0.3, 1.0):
        judged(boxes, scores, limit, way=way)


@pytest.mark.parametrize("kind", reference.KINDS)
@pytest.mark.parametrize("way", WAYS)
def test_kinds_of_boxes(way, kind):
    judged(*reference.KINDS[kind](3001), way=way)


@pytest.mark.parametrize("threads", [64, 128, 512])
@pytest.mark.parametrize("at_once", [1, 3, 8])
def test_shapes_of_the_blocks(threads, at_once):
    boxes, scores = reference.some_boxes(2500, size=200, seed=4)
    for columns in (1, 3, 16):
        judged(boxes, scores, threads=threads, at_once=at_once, columns=columns)


def test_many_boxes_in_all_ways():
    """More blocks than the GPU holds at a time."""
    boxes, scores = reference.some_boxes(60_000, side=3000, size=100, seed=5)
    wanted = kept(boxes, scores, way="tiles")
    assert kept(boxes, scores) == wanted == kept(boxes, scores, way="ahead")


def test_scores_that_are_no_numbers_or_equal():
    boxes = np.tile(np.array([0, 0, 4, 4], "float32"), (70, 1))
    scores = np.full(70, 0.5, "float32")
    judged(boxes, scores)
    scores[:] = np.nan
    judged(boxes, scores)
    scores[40], scores[60] = -np.inf, np.inf
    judged(boxes, scores)
    scores[:] = -0.0
    scores[1::2] = 0.0  # equal to -0.0
    assert kept(boxes, scores) == [0]


def test_boxes_without_an_area_and_beyond_numbers():
    boxes = np.zeros((66, 4), "float32")
    judged(boxes, np.ones(66, "float32"))  # 0 > 0.5 * 0 is false: all stay
    boxes[:, 2:] = np.inf
    judged(boxes, np.ones(66, "float32"))
    boxes[7] = np.nan
    judged(boxes, np.ones(66, "float32"))


def test_none_at_all():
    count = ct.empty(1, "int32")
    none, scores = ct.empty((0, 4), "float32"), ct.empty(0, "float32")
    nms(none, scores, ct.empty(0, "int32"), count)()
    assert count.get()[0] == 0


def test_as_torchvision():
    torchvision = pytest.importorskip("torchvision")
    torch = pytest.importorskip("torch")
    for kind, make in reference.KINDS.items():
        boxes, scores = make(5000)
        theirs = torchvision.ops.nms(torch.tensor(boxes), torch.tensor(scores), 0.5)
        assert set(kept(boxes, scores)) == set(theirs.tolist()), kind


@pytest.mark.parametrize("n, classes", [(1, 1), (33, 80), (8400, 20)])
def test_decoding(n, classes):
    out = ct.rng(n).standard_normal((4 + classes, n), dtype="float32")
    out[:4] = np.abs(out[:4]) * 100
    out[4:, 0] = 0  # of equal numbers the first class
    found = ct.empty((n, 4), "float32"), ct.empty(n, "float32"), ct.empty(n, "int32")
    decode(ct.to_device(out), *found, 0.5, 3, 80, 1280, 960)()
    for one, want in zip(found, reference.decode(out, 0.5, 3, 80, 1280, 960)):
        ct.check(one, want, atol=1e-3)


def test_from_candidates_to_boxes():
    out = candidates()
    n = out.shape[1]
    found = ct.empty((n, 4), "float32"), ct.empty(n, "float32"), ct.empty(n, "int32")
    decode(ct.to_device(out), *found, SCALE, 0, 0, 512, 512)()
    boxes, scores, classes = (one.get() for one in found)
    stay = kept(boxes, scores, 0.5, 0.25, classes)
    assert stay == reference.nms(boxes, scores, 0.5, 0.25, classes).tolist()
    assert sorted(classes[stay]) == [0, 1, 2, 3, 4, 4]


def test_what_is_refused():
    boxes, scores = (ct.to_device(one) for one in reference.some_boxes(10))
    found, count = ct.empty(10, "int32"), ct.empty(1, "int32")
    out = ct.empty((4, 10), "float32")
    refused = [
        (ValueError, lambda: nms(boxes, scores, found, count, limit=1.5)),
        (ValueError, lambda: nms(boxes, scores, found, count, limit=np.nan)),
        (ValueError, lambda: nms(boxes, scores, found, count, way="best")),
        (ValueError, lambda: nms(boxes, scores[:9], found, count)),
        (TypeError, lambda: nms(boxes, scores, scores, count)),
        (TypeError, lambda: nms(boxes, scores, found, count, classes=scores)),
        (ValueError, lambda: decode(out, boxes, scores, found, 1, 0, 0, 8, 8)),
        (ValueError, lambda: decode(out, boxes, scores, found, 0, 0, 0, 8, 8)),
    ]
    for error, call in refused:
        with pytest.raises(error):
            call()


FAULTS = {
    "a side below 0 counts": ("fmaxf(a.x, b.x), 0.0f)", "fmaxf(a.x, b.x), -1e9f)"),
    "areas are not subtracted": ("of_a + of_b - both", "of_a + of_b"),
    "bits stand the other way round": ("__float_as_uint(far), found, 1)", "found, __float_as_uint(far), 31)"),
    "a tile removes none of its own": ("bits &= ~(Word(1) << t);", "bits = 0;"),
    "classes do not count": ("my_class != class_of_other[j]", "false"),
    "the better box is the last one": ("bits >> 31 ? bits : ~bits", "bits >> 31 ? ~bits : bits"),
    "the last box is left out": ("left >= TILE ? 0 : ~Word(0) << left", "left >= TILE ? 0 : ~Word(0) << (left - 1)"),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_noticed(tmp_path, monkeypatch, name):
    right, wrong = FAULTS[name]
    text = (ct.paths.examples_dir() / postprocess.NMS).read_text(encoding="utf-8")
    assert text.count(right) == 1
    file = tmp_path / "nms.cu"
    file.write_text(text.replace(right, wrong), encoding="utf-8")
    monkeypatch.setattr(postprocess, "NMS", str(file))
    postprocess.kernel.cache_clear()
    try:
        boxes, scores = reference.some_boxes(300, size=400, seed=6)
        boxes = boxes.round(-1)  # overlaps of exactly the limit occur
        classes = ct.rng(2).integers(0, 3, 300).astype("int32")
        wanted = reference.nms(boxes, scores, 0.5, classes=classes).tolist()
        assert kept(boxes, scores, classes=classes) != wanted
    finally:
        postprocess.kernel.cache_clear()
