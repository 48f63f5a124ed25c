"""paged_scheme.cu on a GPU: every step of vLLM's scheme against float64 and beside decode.cu, over blocks in any order whose free
slots hold NaN; lengths that fit no block; the longest context."""

import numpy as np
import pytest

import cudatut as ct
from cudatut.book.llm.kernels.attention import exact
from cudatut.book.llm.vllm_kernel import loads, scheme
from cudatut.book.numbers.bf16 import to_bf16, to_float
from cudatut.gpu.device import supports

NAN = 0x7FC0


@pytest.fixture(autouse=True)
def needs_sm_80():
    if not supports(ct.device().compute_capability, "sm_80"):
        pytest.skip("paged_scheme.cu needs sm_80")


def attended(lengths, heads, kv_heads, d, block, step, seed=0, more=0):
    """out, log-sum-exps, what is expected, its bounds. more: how much longer `longest` is than the longest sequence."""
    rng, size, longest = ct.rng(seed), len(lengths), max(lengths) + more
    count = ct.cdiv(longest, block) + 1
    tables = rng.permutation(size * count).astype("int32").reshape(size, -1)
    q = to_bf16(rng.standard_normal((size, heads, d)))
    shape = size, longest, kv_heads, d
    keys, values = (to_bf16(rng.standard_normal(shape)) for _ in "kv")
    slots = np.full((size, longest), -1, "int32")
    for i, n in enumerate(lengths):
        j = np.arange(n)
        slots[i, :n] = tables[i, j // block] * block + j % block
        tables[i, ct.cdiv(n, block) :] = 1 << 30  # far beyond the cache
    cache = scheme.Cache(size * count, kv_heads, d, block, step)
    for one in (cache.keys, cache.values):
        one.fill(np.uint16(NAN))
    flat = [ct.to_device(x.reshape(-1, kv_heads, d)) for x in (keys, values)]
    cache.store(*flat, ct.to_device(slots.reshape(-1)))
    out = ct.to_device(np.full(q.shape, NAN, "uint16"))
    lse = ct.to_device(np.full(q.shape[:2], np.nan, "float32"))
    arrays = [ct.to_device(x) for x in (q, tables, np.array(lengths, "int32"))]
    cache.attention(*arrays, out, lse, longest)()
    wanted, means, sums = np.zeros(q.shape), np.zeros(q.shape), np.full(q.shape[:2], -np.inf)
    for i, n in enumerate(lengths):
        if n:
            result, mean = exact.attention(q[i, None], keys[i, :n], values[i, :n])
            wanted[i], means[i] = result[0], mean[0]
            for h in range(heads):
                k = to_float(keys[i, :n, h // (heads // kv_heads)]).astype("float64")
                sums[i, h] = np.log(np.exp(k @ to_float(q[i, h]) * d**-0.5).sum())
    return to_float(out.get()), lse.get(), wanted, means, sums


SHAPES = [
    (4, 4, 128, 16),
    (6, 2, 96, 32),
    (9, 3, 64, 16),
    (8, 1, 256, 8),
    (6, 2, 128, 1),
    (6, 2, 128, 4),
]


@pytest.mark.parametrize(
    "name, heads, kv_heads, d, block",
    [
        (name, *shape)
        for n, shape in enumerate(SHAPES)
        for name, step in scheme.STEPS.items()
        if n < 2 or step in (scheme.V1, scheme.V2)
    ],
)
def test_any_number_of_keys(name, heads, kv_heads, d, block):
    lengths = [0, 1, block - 1, block, block + 1, 511, 512, 513, 1024, 1025, 3000]
    out, lse, wanted, means, sums = attended(lengths, heads, kv_heads, d, block, scheme.STEPS[name])
    bounds = exact.bounds(means)
    assert (np.abs(out - wanted) <= bounds["atol"] + bounds["rtol"] * np.abs(wanted)).all()
    np.testing.assert_allclose(lse, sums, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("step", [scheme.V1, scheme.V2])
def test_no_keys_at_all_and_parts_that_nobody_has(step):
    out, lse, *_ = attended([0, 0], 2, 2, 128, 16, step, more=2000)
    assert not out.any() and np.isneginf(lse).all()


def test_a_sequence_that_has_no_room_gets_nan_and_harms_no_other():
    d, block = 128, 16
    cache = scheme.Cache(8, 1, d, block, scheme.V1)
    q = to_bf16(ct.rng(0).standard_normal((2, 1, d)))
    flat = to_bf16(ct.rng(1).standard_normal((128, 1, d)))
    cache.store(*(ct.to_device(flat) for _ in "kv"), ct.to_device(np.arange(128, dtype="int32")))
    tables = ct.to_device(np.arange(8, dtype="int32").reshape(2, 4))
    out, lse = ct.empty(q.shape, "uint16"), ct.empty((2, 1), "float32")
    lengths = ct.to_device(np.array([64, 20], "int32"))
    cache.attention(ct.to_device(q), tables, lengths, out, lse, 32)()
    found = to_float(out.get())
    assert np.isnan(found[0]).all() and np.isnan(lse.get()[0])
    wanted, mean = exact.attention(q[1, None], flat[64:84], flat[64:84])
    assert (np.abs(found[1] - wanted[0]) <= exact.bounds(mean)["atol"] * 2).all()


def test_both_kernels_say_the_same_of_the_same_cache():
    load = loads.Load(5, 1024, 8, 2)
    load.ours(16)()
    ours = to_float(load.out.get())
    for step in scheme.STEPS.values():
        ct.poison(load.out)
        load.vllm(step)()
        np.testing.assert_allclose(to_float(load.out.get()), ours, atol=0.01)


def test_the_longest_context_fills_shared_memory():
    gpu = ct.device()
    static = ct.Kernel(scheme.SOURCE, scheme.names(128, 16, scheme.V1)[1]).resources(128).shared_bytes  # fmt: skip
    for opt_in, most in ((False, gpu.shared_per_block), (True, gpu.shared_per_block_optin)):
        longest = scheme.longest_context(128, 16, scheme.V1, opt_in)
        assert longest == (most - static) // 4 // 16 * 16
    assert scheme.longest_context(128, 16, scheme.V2, False) == 16 << 19


@pytest.mark.parametrize("name", scheme.STEPS)
def test_nothing_is_spilled_and_blocks_share_an_sm(name):
    found = scheme.Cache(1, 1, 128, 16, scheme.STEPS[name]).resources(512)
    assert found.spill_bytes == 0 and found.blocks_per_sm >= 2
