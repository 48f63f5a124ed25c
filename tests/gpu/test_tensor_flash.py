"""Attention on Hopper, examples/tensor/attention/flash_hopper.cu, against float64: shapes of other projects' tests with and without a
causal mask, groups of heads, rows that lie apart, other plans, repeats; what the kernel does not have goes elsewhere."""

import numpy as np
import pytest

import cudatut as ct
from cudatut.book.tensor.attention import flash_hopper
from cudatut.gpu.device import supports

NAN = 0x7FFF  # as bf16


@pytest.fixture(autouse=True)
def needs_hopper():
    if not supports(ct.device().compute_capability, "sm_90a"):
        pytest.skip("flash_hopper.cu needs sm_90a")


def rounded(x):
    bits = np.ascontiguousarray(x, "float32").view("uint32")
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype("uint16")


def widened(bits):
    return (np.asarray(bits, "uint32") << 16).view("float32").astype("float64")


def normal(rng, *shape, by=1.0):
    return rounded(by * rng.standard_normal(shape, dtype="float32"))


def attention(q, keys, values, causal, scale):
    """Of one sequence in float64, from bits: results, log-sum-exps, and the mean of |values| that errors scale with."""
    q, keys, values = (widened(x) for x in (q, keys, values))
    q_len, heads, d = q.shape
    k_len, kv_heads = keys.shape[:2]
    seen = np.ones((q_len, k_len), bool)
    if causal:
        seen = np.arange(k_len)[None] <= np.arange(q_len)[:, None] + k_len - q_len
    out, mean = np.zeros((2, q_len, heads, d))
    lse = np.full((q_len, heads), -np.inf)
    some = seen.any(axis=1)
    for head in range(heads):
        group = head // (heads // kv_heads)
        scores = q[:, head] @ keys[:, group].T * (scale or d**-0.5)
        scores[~seen] = -np.inf
        most = scores[some].max(axis=1, keepdims=True, initial=-np.inf)
        powers = np.exp(scores[some] - most)
        total = powers.sum(axis=1, keepdims=True)
        powers /= total
        out[some, head], mean[some, head] = (
            powers @ values[:, group],
            powers @ abs(values[:, group]),
        )
        lse[some, head] = (most + np.log(total))[:, 0]
    return out, lse, mean


def as_pytorch(q, keys, values, causal, scale):
    """Of one sequence, every step rounded to bf16, as PyTorch computes it from plain operations."""
    q, keys, values = (widened(x).astype("float32") for x in (q, keys, values))
    q_len, heads, d = q.shape
    k_len, kv_heads = keys.shape[:2]
    unseen = np.arange(k_len)[None] > np.arange(q_len)[:, None] + k_len - q_len
    keys = widened(rounded(keys * np.float32(scale or d**-0.5))).astype("float32")
    out = np.zeros((q_len, heads, d))
    for head in range(heads):
        group = head // (heads // kv_heads)
        scores = widened(rounded(q[:, head] @ keys[:, group].T))
        if causal:
            scores[unseen] = -np.inf
        most = scores.max(axis=1, keepdims=True, initial=-np.inf)
        powers = np.exp(scores - np.where(np.isinf(most), 0, most))
        weights = widened(rounded(powers / np.maximum(powers.sum(axis=1, keepdims=True), 1e-30)))
        out[:, head] = widened(rounded(weights @ values[:, group]))
    return out


def run(q, keys, values, **options):
    out = ct.empty((*q.shape[:3], keys.shape[3]), "uint16")
    lse = ct.empty(out.shape[:3], "float32")
    flash_hopper.attention(*(ct.to_device(x) for x in (q, keys, values)), out, lse, **options)
    ct.synchronize()
    return out.get(), lse.get()


# Two limits. Of each element: weights and results are rounded to bf16, each time by up to 2^-9 of what is rounded; that
# bounds the error by 2^-9 (mean |value| + |result|), here with a factor of 2 for sums in fp32. Of all elements together:
# twice the largest error of PyTorch in the same precision on the same data.
def compare(sequences, q_len, k_len, heads, kv_heads, d, causal=False, by=1.0, **more):
    rng = ct.rng(q_len + 7 * k_len + d)
    q = normal(rng, sequences, q_len, heads, d, by=by)
    keys, values = (normal(rng, sequences, k_len, kv_heads, d) for _ in range(2))
    got, lse = run(q, keys, values, causal=causal, **more)
    largest = np.zeros(2)  # error: ours, PyTorch's
    for i in range(sequences):
        out, of_sums, mean = attention(q[i], keys[i], values[i], causal, more.get("scale"))
        limit = 1.05 * 2**-8 * (mean + abs(out)) + 1e-5
        error = abs(widened(got[i]) - out)
        assert not np.isnan(error).any(), "NaN got through"
        assert (error <= limit).all(), f"error {(error / limit).max():.2f} times the limit"
        theirs = as_pytorch(q[i], keys[i], values[i], causal, more.get("scale"))
        largest = np.maximum(largest, [error.max(initial=0), abs(theirs - out).max(initial=0)])
        none = np.isinf(of_sums)
        assert (lse[i][none] == -np.inf).all()
        np.testing.assert_allclose(lse[i][~none], of_sums[~none], rtol=2e-4, atol=2e-4)
    assert largest[0] <= 2 * largest[1] + 1e-5, "more than twice PyTorch's largest error"


SHAPES = [(113, 203), (128, 217), (113, 211), (108, 256), (256, 512), (512, 256), (1024, 1024)]
SHAPES += [(1023, 1024), (1024, 1023), (2048, 2048), (1, 239), (3, 799), (127, 512), (127, 513)]
SHAPES += [
    (1, 1),
    (239, 1),
    (799, 3),
    (64, 0),
    (1, 64),
    (65, 65),
    (129, 128),
    (192, 192),
    (193, 385),
]


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("d", [64, 128])
@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: "x".join(map(str, shape)))
def test_lengths(shape, d, causal):
    compare(2, *shape, 6, 2, d, causal)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("heads", "kv_heads"), [(1, 1), (6, 6), (6, 1), (16, 4), (32, 32)])
def test_groups_of_heads(heads, kv_heads, causal):
    """More tiles than there are SMs, and fewer: blocks draw several, and none is left over or done twice."""
    compare(3, 333, 450, heads, kv_heads, 64, causal)
    compare(5, 150, 150, heads, kv_heads, 128, causal)


@pytest.mark.parametrize("d", [64, 128])
def test_scores_that_grow_from_tile_to_tile(d):
    compare(1, 256, 700, 2, 2, d, by=40.0)
    compare(1, 256, 700, 2, 2, d, causal=True, scale=2.0)
    for causal in (False, True):
        maxima = flash_hopper.plan_for(d, causal)._replace(maxima=True)
        compare(1, 256, 700, 2, 2, d, causal, by=40.0, plan=maxima)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("d", [64, 128])
def test_each_default_plan(d, causal):
    """Lengths for which `plan_for` decides differently."""
    for q_len, k_len in ((500, 500), (193, 4200), (600, 1000), (300, 8200)):
        compare(1, q_len, k_len, 4, 2, d, causal)
    assert len({flash_hopper.plan_for(d, causal, n, n) for n in (512, 8192)}) == 2


PLANS = [
    (128, 2, 176, 2, 1),
    (128, 2, 160, 2, 2),
    (128, 2, 144, 2, 2),
    (64, 2, 128, 2, 2),
    (128, 2, 160, 2, 1),
    (128, 2, 64, 4, 2),
    (128, 3, 80, 2, 1),
    (64, 3, 112, 2, 2),
]
PLANS += [(64, 2, 192, 2, 2), (64, 3, 128, 3, 1), (64, 2, 96, 4, 2)]


@pytest.mark.parametrize("plan", PLANS, ids=str)
@pytest.mark.parametrize("causal", [False, True])
def test_other_plans(plan, causal):
    for changes in ({}, {"pingpong": False}, {"overlap": False}, {"maxima": True}):
        of = flash_hopper.Plan(*plan, causal)._replace(**changes)
        compare(2, 333, 500, 4, 2, plan[0], causal, plan=of)


PAIRED = [(333, 500), (1, 239), (1024, 1024), (257, 130)]
PAIRED += [(2300, 239)]  # several tiles of queries for each pair


@pytest.mark.parametrize("bn", [128, 176])
@pytest.mark.parametrize("shape", PAIRED, ids=str)
def test_pairs_of_blocks(bn, shape):
    for causal in (False, True):
        plan = flash_hopper.Plan(128, 2, bn, 2, 1, causal, cluster=2)
        compare(2, *shape, 6, 2, 128, causal, plan=plan)


@pytest.mark.parametrize("together", [1, 2, 3, 7, 12])
def test_heads_together_change_no_bit(together):
    rng = ct.rng(together)
    q, keys, values = (normal(rng, 3, 700, 4, 64) for _ in range(3))
    wanted = run(q, keys, values, causal=True)
    got = run(q, keys, values, causal=True, together=together)
    for one, other in zip(got, wanted):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("d", [64, 128])
def test_repeats_are_equal_bit_by_bit(d, causal):
    rng = ct.rng(5)
    q, keys, values = (normal(rng, 2, 1023, 8, d) for _ in range(3))
    wanted = run(q, keys, values, causal=causal)
    for _ in range(5):
        for one, other in zip(run(q, keys, values, causal=causal), wanted):
            np.testing.assert_array_equal(one, other)
    assert flash_hopper.counter(0).get().tolist() == [0]


def test_rows_that_lie_apart():
    """q in rows of a fused projection, keys beside values; what lies between them is NaN, and stays unread."""
    rng, heads, kv_heads, d = ct.rng(3), 6, 2, 64
    fused = np.full((2, 100, (heads + 2) * d), NAN, "uint16")
    fused[:, :, : heads * d] = normal(rng, 2, 100, heads * d)
    both = normal(rng, 2, 150, 2 * kv_heads, d)
    there = ct.to_device(both)
    out = ct.empty((2, 100, heads, d), "uint16")
    flash_hopper.attention(
        ct.to_device(fused), there[:, :, :kv_heads], there[:, :, kv_heads:], out, causal=True
    )
    q = np.ascontiguousarray(fused[:, :, : heads * d]).reshape(2, 100, heads, d)
    for i in range(2):
        wanted, _, mean = attention(q[i], both[i, :, :kv_heads], both[i, :, kv_heads:], True, None)
        error = abs(widened(out.get()[i]) - wanted)
        assert (error <= 1.05 * 2**-8 * (mean + abs(wanted)) + 1e-5).all()


@pytest.mark.parametrize("d", [40, 96, 256])
def test_other_heads_go_to_the_other_kernel(d):
    compare(2, 113, 203, 6, 2, d, causal=True)


def test_sizes_and_numbers_that_are_refused():
    q, keys, thin, out = (
        ct.empty((1, 8, heads, d), "uint16") for heads, d in ((4, 64), (3, 64), (4, 32), (4, 64))
    )
    for arrays, how, message in (
        ((q, keys, keys, out), {}, "4 query heads of 64 elements cannot share"),
        ((q, thin, thin, out), {}, "cannot share"),
        ((q, q, q, out), {"scale": -1.0}, "scale=-1.0"),
        ((q, q, q, out), {"together": 0}, "together=0"),
        ((q, q, q, out), {"plan": flash_hopper.plan_for(128, False)}, "is not for heads of 64"),
        ((q, q, q, out), {"plan": flash_hopper.plan_for(64, True)}, "causal=False"),
    ):
        with pytest.raises(ValueError, match=message):
            flash_hopper.attention(*arrays, **how)
