"""decode.py: attention of one query per sequence over paged and contiguous keys and values, on a GPU, against NumPy in
float64; shapes are those of vLLM's, FlashAttention's and FlashInfer's tests."""

import math

import llm_fp8
import numpy as np
import pytest

import cudatut as ct
from cudatut.book.llm.kernels.attention import decode
from cudatut.gpu.device import supports

NAN = 0x7FC0


@pytest.fixture(autouse=True)
def needs_sm_80():
    if not supports(ct.device().compute_capability, "sm_80"):
        pytest.skip("decode.cu needs sm_80")


def to_bf16(x):
    bits = np.ascontiguousarray(x, "float32").view("uint32")
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype("uint16")


def to_float(bits):
    return (bits.astype("uint32") << 16).view("float32")


def normal(rng, shape):
    """Random bf16 numbers."""
    return to_bf16(rng.standard_normal(shape, "float32"))


class Case:
    """Sequences of these lengths with random queries, keys and values; slots that none of them has hold NaN, and so do
    those before the window, whose blocks are not in the table either.
    """

    nan = NAN

    def __init__(self, lengths, heads, kv_heads, d, block_size=16, window=0, seed=0, spare=7):
        rng, self.more = ct.rng(seed), {}
        self.lengths, self.heads, self.kv_heads, self.d = lengths, heads, kv_heads, d
        self.block_size, self.window = block_size, window
        s, longest = len(lengths), max(lengths)
        width = ct.cdiv(longest, block_size) + 2
        needed = [
            (i, b)
            for i, length in enumerate(lengths)
            for b in range(ct.cdiv(length, block_size))
            if not window or (b + 1) * block_size > length - window
        ]
        places = rng.permutation(len(needed) + spare)
        self.tables = np.full((s, width), -1, "int32")
        slots = (len(needed) + spare) * block_size
        self.keys, self.values = (np.full((slots, kv_heads, d), NAN, "uint16") for _ in range(2))
        self.q = normal(rng, (s, heads, d))
        self.rows = []  # slots of each sequence's visible keys
        for (i, b), place in zip(needed, places):
            self.tables[i, b] = place
        for i, length in enumerate(lengths):
            j = np.arange(max(0, length - window) if window else 0, length)
            rows = self.tables[i, j // block_size] * block_size + j % block_size
            self.keys[rows], self.values[rows] = (normal(rng, (len(j), kv_heads, d)) for _ in "kv")
            self.rows.append(rows)

    def stored(self):
        """Keys and values as numbers."""
        return [to_float(x).astype("float64") for x in (self.keys, self.values)]

    def expected(self, scale=None, softcap=0.0, only=None):
        """out, its bound, and lse of the sequences `only`, by default all."""
        scale = 1 / math.sqrt(self.d) if scale is None else scale
        group = self.heads // self.kv_heads
        picked = range(len(self.lengths)) if only is None else only
        out = np.zeros((len(picked), self.heads, self.d))
        bound, lse = np.zeros_like(out), np.full(out.shape[:2], -np.inf)
        numbers = self.stored()
        for n, i in enumerate(picked):
            if not self.lengths[i]:
                continue
            k, v = (x[self.rows[i]] for x in numbers)
            for h in range(self.kv_heads):
                mine = slice(h * group, (h + 1) * group)
                scores = to_float(self.q[i, mine]).astype("float64") @ k[:, h].T * scale
                if softcap:
                    scores = softcap * np.tanh(scores / softcap)
                most = scores.max(axis=1, keepdims=True)
                p = np.exp(scores - most)
                total = p.sum(axis=1, keepdims=True)
                out[n, mine] = p / total @ v[:, h]
                # Weights and results are rounded to bf16, a relative 2^-8 each at most.
                bound[n, mine] = (p / total @ np.abs(v[:, h]) + np.abs(out[n, mine])) / 256 + 1e-6
                lse[n, mine] = (most + np.log(total))[:, 0]
        return out, bound, lse

    def run(self, only=None, contiguous=False, longest=None, **how):
        """out in float32 and lse."""
        picked = list(range(len(self.lengths)) if only is None else only)
        lengths = np.array([self.lengths[i] for i in picked], "int32")
        s, longest = len(picked), int(lengths.max()) if longest is None else longest
        need = decode.sizes(
            s, self.heads, self.kv_heads, self.d, longest, how.get("split", decode.SPLIT),
            self.window,
        )  # fmt: skip
        out = ct.to_device(np.full((s, self.heads, self.d), NAN, "uint16"))
        lse = ct.to_device(np.full((s, self.heads), np.nan, "float32"))
        partials = ct.to_device(np.full(need.partials, np.nan, "float32"))
        tickets = ct.to_device(np.zeros(need.tickets, "uint32"))
        common = {"window": self.window, **self.more, **how}
        q = ct.to_device(self.q[picked])
        if contiguous:
            shape = (s, longest + 3, self.kv_heads, self.d)
            keys, values = (np.full(shape, self.nan, self.keys.dtype) for _ in "kv")
            for n, i in enumerate(picked):
                end, count = self.lengths[i], len(self.rows[i])
                keys[n, end - count : end] = self.keys[self.rows[i]]
                values[n, end - count : end] = self.values[self.rows[i]]
            arguments = q, ct.to_device(keys), ct.to_device(values), ct.to_device(lengths)
            decode.contiguous(*arguments, out, lse, partials, tickets, longest, **common)
        else:
            decode.paged(
                q, ct.to_device(self.keys), ct.to_device(self.values),
                ct.to_device(self.tables[picked]), ct.to_device(lengths), self.block_size, out, lse,
                partials, tickets, longest, **common,
            )  # fmt: skip
        assert not tickets.get().any(), "a ticket is left"
        return to_float(out.get()), lse.get()

    def check(self, scale=None, softcap=0.0, expect=None, **how):
        out, lse = self.run(scale=scale, softcap=softcap, **how)
        exact, bound, exact_lse = expect or self.expected(scale, softcap)
        error = np.abs(out - exact)
        assert (error <= bound).all(), f"{np.nanmax(error - bound)} beyond the bound"
        np.testing.assert_allclose(lse, exact_lse, rtol=1e-5, atol=1e-4)


class Fp8Case(Case):
    """The same with keys and values in FP8."""

    nan = llm_fp8.NAN

    def __init__(self, lengths, heads, kv_heads, d, *more, **options):
        super().__init__(lengths, heads, kv_heads, d, *more, **options)
        self.scales = ct.rng(9).uniform(0.02, 3, (2, kv_heads)).astype("float32")
        self.keys, self.values = (llm_fp8.store(x, by) for x, by in zip(self.stored(), self.scales))
        self.more = {"scales": ct.to_device(self.scales)}

    def stored(self):
        if self.keys.dtype != np.uint8:
            return super().stored()
        both = zip((self.keys, self.values), self.scales)
        return [llm_fp8.from_fp8(x) * by[:, None] for x, by in both]


@pytest.mark.parametrize("block_size", [16, 32])
@pytest.mark.parametrize("d", decode.HEAD_DIMS)
@pytest.mark.parametrize("heads", [(40, 40), (64, 8)], ids=str)
def test_shapes_of_vllm(heads, d, block_size):
    lengths = [1, 17, 333, 512, 513, 900, 1024]
    Case(lengths, *heads, d, block_size, spare=100).check()


@pytest.mark.parametrize("d", [64, 128])
@pytest.mark.parametrize("kv_heads", [6, 2, 1])
@pytest.mark.parametrize("length", [1, 128, 339, 799, 800, 1024, 2048, 20_000, 131_072])
def test_shapes_of_flash_attention(length, kv_heads, d):
    case = Case([length, max(1, length // 3)], 6, kv_heads, d, block_size=256)
    expect = case.expected()
    case.check(expect=expect)
    case.check(expect=expect, contiguous=True)


@pytest.mark.parametrize("page", [1, 8, 16])
@pytest.mark.parametrize(
    ("batch", "length"), [(12, 54), (17, 97), (128, 512), (12, 2048), (3, 16384)]
)
def test_shapes_of_flashinfer(batch, length, page):
    rng = ct.rng(batch)
    Case([length, *rng.integers(1, length + 1, batch - 1)], 4, 4, 128, page).check()
    Case([length, *rng.integers(1, length + 1, batch - 1)], 8, 1, 64, page).check()


@pytest.mark.parametrize("group", [1, 2, 3, 5, 7, 8, 9, 16, 17])
def test_queries_that_share_keys(group):
    Case([1, 5, 64, 600], 3 * group, 3, 64, 7).check(split=64)


@pytest.mark.parametrize("split", [1, 16, 63, 64, 100, 512, 4096])
def test_parts_of_any_length(split):
    case = Case([1, split - 1 or 1, split, split + 1, 1000], 4, 2, 128)
    expect = case.expected()
    for contiguous in (False, True):
        case.check(split=split, contiguous=contiguous, expect=expect)
        case.check(split=split, contiguous=contiguous, expect=expect, longest=4500)


@pytest.mark.parametrize(("d", "warps"), [(64, 8), (64, 16), (128, 8)])
@pytest.mark.parametrize("split", [100, decode.SPLIT])
def test_more_warps(d, warps, split):
    if decode.choose(1, 1, d)[0] == 4:
        pytest.skip("too little shared memory")
    Case([1, 15, 300, 513, 1200], 9, 3, d, 16).check(split=split, warps=warps)
    Fp8Case([1, 15, 300, 513, 1200], 9, 3, d, 16).check(split=split, warps=warps)


@pytest.mark.parametrize("window", [1, 15, 16, 256, 5000])
def test_a_window(window):
    case = Case([1, 16, 256, 257, 523, 2011], 8, 2, 128, window=window)
    expect = case.expected()
    for split in (64, 512):
        case.check(split=split, expect=expect)


@pytest.mark.parametrize("softcap", [1.0, 50.0])
def test_a_soft_cap(softcap):
    Case([1, 37, 523, 1328], 8, 2, 128).check(softcap=softcap, scale=1.5)


def test_no_keys_at_all_and_too_many():
    case = Case([0, 5, 0, 700], 6, 2, 64)
    case.check(split=64)
    out, lse = case.run(split=64, longest=640)  # a promise that the last one breaks
    assert np.isnan(out[3]).all() and np.isnan(lse[3]).all()
    exact, bound, _ = case.expected()
    assert (np.abs(out[:3] - exact[:3]) <= bound[:3]).all()


def test_neither_the_batch_nor_the_launch_changes_a_bit():
    case = Case([1, 700, 333, 1025, 2048, 64], 9, 3, 64)
    out, lse = case.run(split=128)
    for _ in range(3):
        again, lse_again = case.run(split=128)
        np.testing.assert_array_equal(again, out)
        np.testing.assert_array_equal(lse_again, lse)
    for i in range(6):
        alone, lse_alone = case.run(only=[i], split=128)
        np.testing.assert_array_equal(alone[0], out[i])
        np.testing.assert_array_equal(lse_alone[0], lse[i])
    np.testing.assert_array_equal(case.run(split=128, contiguous=True)[0], out)


def test_queries_in_wider_rows():
    case = Case([5, 100], 4, 2, 64)
    wide = np.full((2, 4 * 64 + 2 * 2 * 64 + 2), NAN, "uint16")
    wide[:, : 4 * 64] = case.q.reshape(2, -1)
    plain, _ = case.run()
    case.q = wide
    np.testing.assert_array_equal(case.run()[0], plain)


@pytest.mark.parametrize("d", decode.HEAD_DIMS)
@pytest.mark.parametrize("heads", [(40, 8), (6, 2), (9, 1)], ids=str)
def test_fp8(heads, d):
    case = Fp8Case([1, 0, 17, 333, 512, 513, 900, 1024], *heads, d)
    expect = case.expected()
    for contiguous in (False, True):
        for split in (64, 512, 2048):
            case.check(split=split, contiguous=contiguous, expect=expect)


@pytest.mark.parametrize("window", [0, 1, 15, 256, 5000])
@pytest.mark.parametrize("softcap", [0.0, 30.0])
def test_fp8_with_a_window_and_a_soft_cap(softcap, window):
    for d in (64, 128):
        case = Fp8Case([1, 16, 256, 257, 523, 2011], 8, 2, d, 7, window=window)
        case.check(split=64, softcap=softcap)


def test_fp8_has_the_same_bits_in_any_batch():
    case = Fp8Case([1, 700, 333, 1025, 2048, 64], 9, 3, 64)
    out, lse = case.run(split=128)
    for i in range(6):
        alone, lse_alone = case.run(only=[i], split=128)
        np.testing.assert_array_equal(alone[0], out[i])
        np.testing.assert_array_equal(lse_alone[0], lse[i])
    np.testing.assert_array_equal(case.run(split=128, contiguous=True)[0], out)


def test_every_fp8_number():
    """One key: the result is its value, and the weight is 1."""
    case = Fp8Case([1] * 256, 2, 2, 64)
    numbers = np.arange(256).reshape(-1, 1, 1) + np.arange(64)
    numbers = np.where(numbers & 0x7F == llm_fp8.NAN, 0, numbers).astype("uint8")
    case.values[np.concatenate(case.rows)] = numbers
    case.scales[:] = 1
    case.more = {"scales": ct.to_device(case.scales)}
    out, _ = case.run()
    np.testing.assert_array_equal(out, np.broadcast_to(llm_fp8.from_fp8(numbers), out.shape))


def test_elements_beyond_2_to_the_31():
    kv_heads, d, block_size = 8, 128, 16
    slots = (1 << 31) // (kv_heads * d) + 4 * block_size
    try:
        keys, values = (ct.empty((slots, kv_heads, d), "uint16") for _ in "kv")
    except ct.OutOfDeviceMemory:
        pytest.skip("needs 8.6 GB")
    small = Case([40], 16, kv_heads, d, block_size)
    last = slots // block_size - 1
    table = np.array([[last, 0, last - 2, -1]], "int32")
    for b, block in enumerate(table[0, :3]):
        here = small.tables[0, b] * block_size
        for to, source in ((keys, small.keys), (values, small.values)):
            to[block * block_size : (block + 1) * block_size].set(source[here : here + block_size])
    out, lse = (
        ct.to_device(np.full(s, 0, t)) for s, t in (((1, 16, d), "uint16"), ((1, 16), "float32"))
    )
    need = decode.sizes(1, 16, kv_heads, d, 40)
    decode.paged(
        ct.to_device(small.q), keys, values, ct.to_device(table),
        ct.to_device(np.array([40], "int32")), block_size, out, lse,
        ct.empty(need.partials, "float32"), ct.to_device(np.zeros(need.tickets, "uint32")), 40,
    )  # fmt: skip
    np.testing.assert_array_equal(to_float(out.get()), small.run()[0])


def merge(a, lse_a, b, lse_b, out, lse):
    rows, dim = lse.size, out.shape[-1]
    kernel = ct.Kernel("llm/kernels/attention/merge.cu", "merge")
    kernel(a, lse_a, b, lse_b, out, lse, rows, dim, grid=ct.cdiv(rows * dim // 8, 256), block=256)


@pytest.mark.parametrize("scale", [20, 400])  # with which exp(lse) is no float32
@pytest.mark.parametrize(("rows", "dim"), [((7, 3), 64), ((1, 1), 8), ((300, 9), 80)])
def test_merge(rows, dim, scale):
    rng = ct.rng(1)
    lse = [rng.standard_normal(rows).astype("float32") * scale for _ in "ab"]
    outs = [normal(rng, (*rows, dim)) for _ in "ab"]
    for k in range(2):
        for value in (np.inf, -np.inf):
            lse[k][rng.random(rows) < 0.2] = value
        outs[k][np.isinf(lse[k])] = NAN
    out, merged = ct.empty((*rows, dim), "uint16"), ct.empty(rows, "float32")
    a, b = (ct.to_device(x) for x in outs)
    merge(a, ct.to_device(lse[0]), b, ct.to_device(lse[1]), out, merged)
    la, lb = (np.where(np.isinf(x), -np.inf, x).astype("float64") for x in lse)
    expected = np.logaddexp(la, lb)
    with np.errstate(invalid="ignore"):
        weights = [np.where(np.isinf(x), 0, np.exp(x - expected))[..., None] for x in (la, lb)]
    floats = [np.where(w > 0, to_float(x), 0) for w, x in zip(weights, outs)]
    mean = sum(w * x for w, x in zip(weights, floats))
    np.testing.assert_allclose(merged.get(), expected, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(to_float(out.get()), mean, rtol=1 / 256, atol=1e-5)
    merge(a, ct.to_device(lse[0]), b, ct.to_device(lse[1]), a, merged)  # in place
    np.testing.assert_array_equal(a.get(), out.get())


def test_merge_of_two_halves_is_attention_over_both():
    case = Case([600], 6, 2, 64)
    whole, lse = case.run()
    cut = 250
    halves = []
    for begin, end in ((0, cut), (cut, 600)):
        part = Case([end - begin], 6, 2, 64)
        part.q = case.q
        for whose, from_whose in ((part.keys, case.keys), (part.values, case.values)):
            whose[part.rows[0]] = from_whose[case.rows[0][begin:end]]
        halves.append(part.run())
    out, merged = ct.empty((1, 6, 64), "uint16"), ct.empty((1, 6), "float32")
    (a, la), (b, lb) = halves
    merge(*(ct.to_device(x) for x in (to_bf16(a), la, to_bf16(b), lb)), out, merged)
    np.testing.assert_allclose(to_float(out.get()), whole, atol=0.01)
    np.testing.assert_allclose(merged.get(), lse, atol=1e-4)


def test_numbers_and_sizes_that_are_refused():
    case = Case([5], 4, 2, 64)
    for how in ({"split": 0}, {"softcap": -1.0}, {"longest": -1}, {"warps": 5}):
        with pytest.raises((ValueError, ZeroDivisionError)):
            case.run(**how)
    with pytest.raises(ValueError, match="for FP8"):
        case.run(scales=ct.empty((2, 2), "float32"))
    case.q = case.q[:, :3]
    with pytest.raises(ValueError, match="must begin with 256"):
        case.run()
