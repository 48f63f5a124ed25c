"""The scans of primitives/scan on a real GPU: ragged lengths, every type, launches in a row, fixed orders, refused views."""

import numpy as np
import pytest

import cudatut as ct
from cudatut.book.primitives.scan import reference
from cudatut.book.primitives.scan.scans import SHAPES, Scan, Shape, fastest

LENGTHS = (*ct.RAGGED, 255, 257, 4097, 65_537, 1_000_003)
HOPPER = ("bulk", "ahead", "cluster")
# Of look_back.cuh, each with the scan that shows it. None of them makes a tile wait for ever.
FAULTS = {
    "a sum before is added twice": (
        "look_back",
        "before = from(part, 0) + before;",
        "before = from(part, 0) + from(found[0], 0) + before;",
    ),
    # Tile 0 tells that its prefix is there, and a while later what it is.
    "a state goes before its sum": (
        "look_back",
        """  post(words + (long long)tile * WORDS<P>, sum,
       tag(number, tile ? SUM : PREFIX));""",
        """  if (tile == 0) {
    post(words, P(), tag(number, PREFIX));
    for (const long long from = clock64(); clock64() - from < 1000000;) {
    }
  }
  post(words + (long long)tile * WORDS<P>, sum,
       tag(number, tile ? SUM : PREFIX));""",
    ),
    "a tile's own sum counts as a prefix": (
        "look_back",
        "tag(number, tile ? SUM : PREFIX)",
        "tag(number, PREFIX)",
    ),
    "what precedes a group is lost": (
        "in_order",
        "const P before = *prefix + in_group;",
        "const P before = in_group;",
    ),
}


def numbers(n, dtype, seed=0):
    chance = ct.rng(seed)
    if dtype.startswith("float"):
        return chance.standard_normal(n).astype(dtype)
    return chance.integers(-(1 << 30), 1 << 30, n).astype(dtype)


def check(scan, values, exclusive=False, launches=2):
    expected, far = reference.sums(values, exclusive), reference.most(values)
    x, out = ct.to_device(values), ct.empty(values.size, values.dtype)
    for _ in range(launches):
        ct.poison(out)
        scan(x, out)
        ct.check(out, expected, rtol=0, atol=far)


@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("dtype", ["int32", "float32", "int64", "float64"])
@pytest.mark.parametrize("kind", sorted(set(SHAPES) - {"segments"}))
def test_every_scan_of_ragged_lengths(kind, dtype, exclusive):
    if kind in HOPPER and not ct.supports(ct.device().compute_capability, "sm_90"):
        pytest.skip("asks for Hopper")
    for n in LENGTHS:
        try:
            scan = Scan(kind, n, dtype, exclusive)
        except ValueError:  # too long for one wave, or for a cluster
            assert kind in ("at_once", "cluster")
            continue
        check(scan, numbers(n, dtype, n), exclusive)


@pytest.mark.parametrize(
    "buffers, adders, lookers, teams", [(3, 2, 1, 1), (3, 2, 3, 1), (3, 2, 2, 2), (5, 3, 2, 2)]
)
@pytest.mark.parametrize("stored", [0, 1])
def test_nobody_is_a_phase_too_early(buffers, adders, lookers, teams, stored):
    if not ct.supports(ct.device().compute_capability, "sm_90"):
        pytest.skip("asks for Hopper")
    own = {"TEAMS": teams, "ADDERS": adders, "LOOKERS": lookers, "BULK_STORES": stored}
    shape = Shape(vectors=4, look=5, buffers=buffers, more=tuple(own.items()))
    n = 9_000_001
    check(Scan("ahead", n, "int32", shape=shape), numbers(n, "int32"), launches=40)


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_many_rounds_of_the_ring(dtype):
    if not ct.supports(ct.device().compute_capability, "sm_90"):
        pytest.skip("asks for Hopper")
    n = 20_000_001
    check(Scan("ahead", n, dtype), numbers(n, dtype), launches=40)


@pytest.mark.parametrize("share", [0.0, 0.0005, 0.05, 0.6])
@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_segments_with_many_and_with_few_heads(dtype, exclusive, share):
    for n in LENGTHS:
        values, at = numbers(n, dtype, n), np.arange(n)
        heads = ct.rng(n + 1).random(n) < share
        first = np.maximum.accumulate(np.where(heads, at, 0))
        total = np.cumsum(values, dtype="int64")
        want = total - np.where(first > 0, total[first - 1], 0)
        if exclusive:
            want = want - values
        out = ct.empty(n, dtype)
        ct.poison(out)
        scan = Scan("segments", n, dtype, exclusive)
        scan(ct.to_device(values), out, ct.to_device(heads.astype("uint8")))
        ct.check(out, want.astype(dtype), rtol=0)


def test_a_state_serves_the_next_array_too():
    n = 2_000_003
    scan = Scan("look_back", n, "int32")
    for seed in range(4):
        check(scan, numbers(n, "int32", seed), launches=1)


def test_floats_in_a_fixed_order_have_the_same_bits():
    n = 5_000_003
    x, out = ct.to_device(numbers(n, "float32")), ct.empty(n, "float32")
    scan, seen = Scan("in_order", n), set()
    for _ in range(10):
        scan(x, out)
        seen.add(out.get().tobytes())
    assert len(seen) == 1


def test_a_view_that_begins_between_vectors_is_refused_and_taken_by_single_elements():
    values = numbers(100_001, "int32")
    x, out = ct.to_device(values), ct.empty(100_000, "int32")
    with pytest.raises(ValueError):
        Scan("look_back", 100_000, "int32")(x[1:], out)
    Scan("look_back", 100_000, "int32", shape=Shape(width=4))(x[1:], out)
    ct.check(out, np.cumsum(values[1:], dtype="int64").astype("int32"), rtol=0)


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_that_are_planted(fault, monkeypatch):
    """A copy of the kernels passes; with one fault in the look-back it does not."""
    folder, n = ct.paths.examples_dir() / "primitives/scan", 5_000_003  # more tiles than a group
    kind, right, wrong = FAULTS[fault]
    header = (folder / "look_back.cuh").read_text(encoding="utf-8").replace("#pragma once", "")
    whole = (folder / "one_pass.cu").read_text(encoding="utf-8")
    include = '#include "primitives/scan/look_back.cuh"'
    assert header.count(right) == whole.count(include) == 1
    values = numbers(n, "int32")

    def scan_with(header):
        text = whole.replace(include, header)

        def planted(self, file, name):
            return ct.Kernel(text, name, defines=self._defines)

        monkeypatch.setattr(Scan, "_kernel", planted)
        return Scan(kind, n, "int32")

    check(scan_with(header), values)
    broken = scan_with(header.replace(right, wrong))
    with pytest.raises(ct.CheckError):
        check(broken, values, launches=1)


@pytest.mark.parametrize("n", [1, 1 << 19, 1 << 20, (1 << 21) + 1, (1 << 22) + 1, (1 << 25) + 1])
def test_the_fastest_is_right(n):
    check(fastest(n, "int32"), numbers(n, "int32"))
