"""Attention over many query tokens, examples/llm/kernels/attention/flash.cu, against float64: shapes and head sizes of other projects'
tests, unequal sequences over blocks in any order, what must not be read, bits that do not depend on the batch."""

import itertools
import math

import llm_fp8
import numpy as np
import pytest

import cudatut as ct
from cudatut.book.llm.kernels.attention import flash
from cudatut.gpu.device import supports

NAN = 0x7FFF  # as bf16


@pytest.fixture(autouse=True)
def needs_sm_80():
    if not supports(ct.device().compute_capability, "sm_80"):
        pytest.skip("flash.cu needs sm_80")


def rounded(x):
    """float32 as the bits of bf16, to the nearest, ties to even."""
    bits = np.ascontiguousarray(x, "float32").view("uint32")
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype("uint16")


def widened(bits):
    return (np.asarray(bits, "uint32") << 16).view("float32").astype("float64")


def normal(rng, *shape, by=1.0):
    return rounded(by * rng.standard_normal(shape, dtype="float32"))


def attention(q, keys, values, causal, window, softcap, scale):
    """Of one sequence in float64, from bits: results, log-sum-exps, and the mean of |values| that errors scale with."""
    q, keys, values = (x if x.dtype == "float64" else widened(x) for x in (q, keys, values))
    q_len, heads, d = q.shape
    k_len, kv_heads = keys.shape[:2]
    at = np.arange(q_len)[:, None] + k_len - q_len
    key = np.arange(k_len)[None]
    seen = np.ones((q_len, k_len), bool)
    if causal:
        seen &= key <= at
    if window:
        seen &= key > at - window
    out, mean = np.zeros((2, q_len, heads, d))
    lse = np.full((q_len, heads), -np.inf)
    if k_len == 0:
        return out, lse, mean
    for head in range(heads):
        group = head // (heads // kv_heads)
        scores = q[:, head] @ keys[:, group].T * (scale or d**-0.5)
        if softcap:
            scores = softcap * np.tanh(scores / softcap)
        scores[~seen] = -np.inf
        most = scores.max(axis=1, keepdims=True)
        powers = np.exp(scores - np.where(np.isinf(most), 0, most))
        total = powers.sum(axis=1, keepdims=True)
        some = total[:, 0] > 0
        powers[some] /= total[some]
        out[:, head], mean[:, head] = powers @ values[:, group], powers @ abs(values[:, group])
        lse[some, head] = (most + np.log(np.where(total > 0, total, 1)))[some, 0]
    return out, lse, mean


def check(got, lse, wanted):
    """Weights and results are rounded to bf16, each with an error of up to 2^-8; 5 % and 1e-5 for the rest."""
    out, of_sums, mean = wanted
    limit = 1.05 * 2**-8 * (mean + abs(out)) + 1e-5
    error = abs(widened(got) - out)
    assert not np.isnan(error).any(), "NaN got through"
    assert (error <= limit).all(), f"error {(error / limit).max():.2f} times the limit"
    none = np.isinf(of_sums)
    assert (lse[none] == -np.inf).all()
    np.testing.assert_allclose(lse[~none], of_sums[~none], rtol=2e-4, atol=2e-4)


def run_contiguous(q, keys, values, with_lse=True, **options):
    out = ct.empty((*q.shape[:2], q.shape[2], keys.shape[3]), "uint16")
    lse = ct.empty(out.shape[:3], "float32") if with_lse else None
    flash.contiguous(*(ct.to_device(x) for x in (q, keys, values)), out, lse, **options)
    return out.get(), lse.get() if with_lse else None


def compare(
    sequences, q_len, k_len, heads, kv_heads, d, causal=False, window=0, softcap=0.0, by=1.0, **more
):
    rng = ct.rng(q_len + 7 * k_len + d)
    q = normal(rng, sequences, q_len, heads, d, by=by)
    keys, values = (normal(rng, sequences, k_len, kv_heads, d) for _ in range(2))
    got, lse = run_contiguous(
        q, keys, values, causal=causal, window=window, softcap=softcap, **more
    )
    for i in range(sequences):
        wanted = attention(q[i], keys[i], values[i], causal, window, softcap, more.get("scale"))
        check(got[i], lse[i], wanted)


SHAPES = [(113, 203), (128, 217), (113, 211), (108, 256), (256, 512), (512, 256), (1024, 1024)]
SHAPES += [(1023, 1024), (1024, 1023), (2048, 2048), (1, 239), (3, 799), (127, 512), (127, 513)]
SHAPES += [(1, 1), (239, 1), (799, 3), (64, 0), (1, 64), (65, 65), (129, 128)]


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("d", [64, 128])
@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: "x".join(map(str, shape)))
def test_lengths(shape, d, causal):
    compare(2, *shape, 6, 2, d, causal)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("d", [8, 32, 40, 59, 64, 80, 96, 111, 112, 128, 160, 192, 224, 250, 256])
def test_head_sizes(d, causal):
    compare(2, 113, 203, 6, 6, d, causal)
    compare(1, 200, 150, 4, 1, d, causal)


@pytest.mark.parametrize("window", [0, 1, 37, 128, 1000])
@pytest.mark.parametrize("softcap", [0.0, 15.0, 50.0])
@pytest.mark.parametrize("causal", [False, True])
def test_windows_and_softcap(window, softcap, causal):
    compare(1, 300, 417, 4, 2, 64, causal, window, softcap)
    compare(1, 130, 130, 4, 2, 128, causal, window, softcap, by=10.0)


@pytest.mark.parametrize("d", [64, 128])
def test_scores_that_grow_from_tile_to_tile(d):
    compare(1, 256, 700, 2, 2, d, by=40.0)
    compare(1, 256, 700, 2, 2, d, causal=True, scale=2.0)


TILES = [(64, 128, 64, 4, 3), (64, 128, 128, 4, 2), (64, 64, 64, 4, 4), (64, 128, 64, 8, 1)]
TILES += [(128, 64, 64, 4, 3), (128, 64, 64, 4, 2), (256, 64, 64, 4, 1)]


@pytest.mark.parametrize("tile", TILES, ids=str)
def test_other_tiles(tile):
    if flash.Tile(*tile).shared(False) > ct.device().shared_per_block_optin:
        pytest.skip("needs more shared memory than a block of this GPU has")
    for causal in (False, True):
        compare(2, 333, 500, 4, 2, tile[0], causal, tile=flash.Tile(*tile))


def test_q_in_fused_rows_and_keys_beside_values():
    rng, heads, kv_heads, d = ct.rng(3), 6, 2, 64
    fused = normal(rng, 2, 100, (heads + 2 * kv_heads) * d)
    both = normal(rng, 2, 150, 2 * kv_heads, d)
    both_there = ct.to_device(both)
    out = ct.empty((2, 100, heads, d), "uint16")
    flash.contiguous(
        ct.to_device(fused), both_there[:, :, :kv_heads], both_there[:, :, kv_heads:], out, causal=True
    )  # fmt: skip
    for i in range(2):
        q = fused[i, :, : heads * d].reshape(100, heads, d)
        wanted = attention(q, both[i, :, :kv_heads], both[i, :, kv_heads:], True, 0, 0.0, None)
        check(out.get()[i], wanted[1], wanted)


class Paged:
    """A batch of sequences (queries, keys) over blocks in any order; what no sequence has is NaN."""

    def __init__(self, lengths, heads, kv_heads, d, block_size, seed=0, spare=5, by=1.0):
        rng, self.more = ct.rng(seed), {}
        self.lengths = np.array([k for _, k in lengths], "int32")
        self.starts = np.cumsum([0, *(q for q, _ in lengths)]).astype("int32")
        self.block_size, n = block_size, self.starts[-1]
        used = [ct.cdiv(k, block_size) for _, k in lengths]
        blocks = rng.permutation(sum(used) + spare)
        self.tables = np.full((len(lengths), max(used) + 1), -1, "int32")
        for row, count, end in zip(self.tables, used, np.cumsum(used)):
            row[:count] = blocks[end - count : end]
        slots = len(blocks) * block_size
        self.keys, self.values = np.full((2, slots, kv_heads, d), NAN, "uint16")
        self.q = np.full((n, (heads + 2 * kv_heads) * d), NAN, "uint16")
        self.heads, self.d, self.sequences = heads, d, []
        for i, (q_len, k_len) in enumerate(lengths):
            own = ct.rng(1000 + i)  # whatever the rest of the batch is
            keys, values = (normal(own, k_len, kv_heads, d) for _ in range(2))
            q = normal(own, k_len, heads, d, by=by)[k_len - q_len :]
            at = np.arange(k_len)
            at = self.tables[i][at // block_size] * block_size + at % block_size
            self.keys[at], self.values[at] = keys, values
            self.q[self.starts[i] : self.starts[i + 1], : heads * d] = q.reshape(q_len, -1)
            self.sequences.append((q, keys, values))

    def run(self, room=None, **options):
        tile = options.get("tile") or flash.tile_for(self.d)
        work = flash.order(self.starts, self.lengths, tile, room)
        out = ct.empty((self.starts[-1], self.heads, self.d), "uint16")
        lse = ct.empty(out.shape[:2], "float32")
        arrays = self.q, self.keys, self.values
        lists = self.starts, self.lengths, self.tables
        flash.paged(
            *map(ct.to_device, arrays), out, *map(ct.to_device, lists), self.block_size,
            ct.to_device(work), lse, **self.more, **options,
        )  # fmt: skip
        return out.get(), lse.get()

    def check(self, causal=True, window=0, softcap=0.0, **options):
        out, lse = self.run(causal=causal, window=window, softcap=softcap, **options)
        for i, (q, keys, values) in enumerate(self.sequences):
            own = slice(self.starts[i], self.starts[i + 1])
            check(
                out[own],
                lse[own],
                attention(q, keys, values, causal, window, softcap, options.get("scale")),
            )


RAGGED = {
    "vllm": [(1, 1328), (5, 18), (129, 463), (1, 523), (1, 37), (1, 2011)],
    "fa2": [(64, 800), (64, 256), (3, 799), (1, 128), (1, 339), (3, 1024), (64, 2048), (128, 128)],
    "prefill": [(700, 700), (1, 1), (300, 450), (64, 64), (128, 129)],
}


@pytest.mark.parametrize("batch", RAGGED)
@pytest.mark.parametrize("block_size", [1, 7, 16, 256])
@pytest.mark.parametrize(("heads", "kv_heads", "d"), [(6, 6, 64), (8, 1, 128), (9, 3, 64)])
def test_paged(batch, block_size, heads, kv_heads, d):
    Paged(RAGGED[batch], heads, kv_heads, d, block_size).check()


@pytest.mark.parametrize("d", [40, 59, 80, 96, 112, 120, 160, 192, 256])
def test_paged_head_sizes(d):
    Paged([(9, 73), (1, 1), (164, 164), (5, 300)], 4, 2, d, 16).check()


@pytest.mark.parametrize(("window", "softcap"), [(256, 0.0), (0, 50.0), (256, 50.0), (1, 0.0)])
@pytest.mark.parametrize("d", [64, 128])
def test_paged_windows_and_softcap(window, softcap, d):
    batch = Paged(RAGGED["vllm"], 8, 2, d, 16, by=5.0)
    batch.check(window=window, softcap=softcap)
    batch.check(causal=False, window=window, softcap=softcap)


def test_work_may_have_room_left_over():
    batch = Paged([(100, 200), (1, 30)], 2, 1, 64, 16)
    room = flash.most_items(101, 2, flash.tile_for(64))
    batch.check(room=room)
    with pytest.raises(ValueError, match="do not fit into 1"):
        batch.run(room=1)


class Fp8Paged(Paged):
    """The same with keys and values in FP8."""

    def __init__(self, lengths, heads, kv_heads, d, *rest, **options):
        super().__init__(lengths, heads, kv_heads, d, *rest, **options)
        scales = ct.rng(9).uniform(0.02, 3, (2, kv_heads)).astype("float32")
        self.more = {"scales": ct.to_device(scales)}
        codes = [llm_fp8.store(widened(x), by) for x, by in zip((self.keys, self.values), scales)]
        self.keys, self.values = codes
        for i, (q, *both) in enumerate(self.sequences):
            both = [
                llm_fp8.from_fp8(llm_fp8.store(widened(x), by)) * by[:, None]
                for x, by in zip(both, scales)
            ]
            self.sequences[i] = (q, *both)


@pytest.mark.parametrize("batch", RAGGED)
@pytest.mark.parametrize("block_size", [1, 7, 256])
@pytest.mark.parametrize(("heads", "kv_heads", "d"), [(6, 6, 64), (8, 1, 128), (9, 3, 64)])
def test_fp8_paged(batch, block_size, heads, kv_heads, d):
    Fp8Paged(RAGGED[batch], heads, kv_heads, d, block_size).check()


@pytest.mark.parametrize("d", [16, 32, 48, 80, 96, 112, 128, 160, 192, 256])
def test_fp8_head_sizes(d):
    batch = Fp8Paged([(9, 73), (1, 1), (164, 164), (5, 300)], 4, 2, d, 16)
    batch.check()
    batch.check(causal=False, window=49, softcap=30.0)


@pytest.mark.parametrize("d", [64, 128])
def test_fp8_contiguous(d):
    batch = Fp8Paged([(300, 500)], 4, 2, d, 16)
    out, of_sums = batch.run()
    at = np.arange(500)
    at = batch.tables[0][at // 16] * 16 + at % 16
    q = batch.q[None, :, : 4 * d].reshape(1, 300, 4, d)
    got, lse = run_contiguous(
        q, batch.keys[None, at], batch.values[None, at], causal=True, **batch.more
    )
    np.testing.assert_array_equal(got[0], out)
    np.testing.assert_array_equal(lse[0], of_sums)


@pytest.mark.parametrize("d", [64, 128, 256])
@pytest.mark.parametrize(("window", "softcap"), [(0, 0.0), (49, 30.0)])
def test_bits_do_not_depend_on_the_batch(d, window, softcap):
    total, options = 611, {"window": window, "softcap": softcap}
    out, lse = Paged([(total, total)], 4, 2, d, 16, by=4.0).run(**options)
    cuts = [0, 1, 2, 65, 66, 200, 456, 610, total]
    for first, end in itertools.pairwise(cuts):
        for block_size, others in ((16, []), (5, [(7, 61), (1, 900), (130, 333)])):
            part = [(end - first, end), *others]
            batch = Paged(part, 4, 2, d, block_size, seed=end, by=4.0)
            # The random numbers of the sequence must be those of the whole one.
            whole = Paged([(total, total)], 4, 2, d, 16, by=4.0).sequences[0]
            at = np.arange(end)
            slots = batch.tables[0][at // block_size] * block_size + at % block_size
            batch.keys[slots], batch.values[slots] = whole[1][:end], whole[2][:end]
            batch.q[: end - first, : 4 * d] = whole[0][first:end].reshape(end - first, -1)
            got, of_sums = batch.run(**options)
            np.testing.assert_array_equal(got[: end - first], out[first:end])
            np.testing.assert_array_equal(of_sums[: end - first], lse[first:end])


def test_contiguous_and_paged_give_the_same_bits():
    batch = Paged([(300, 500)], 4, 2, 128, 16)
    q, keys, values = (x[None] for x in batch.sequences[0])
    got, lse = run_contiguous(q, keys, values, causal=True)
    out, of_sums = batch.run()
    np.testing.assert_array_equal(got[0], out)
    np.testing.assert_array_equal(lse[0], of_sums)


@pytest.mark.parametrize("d", [64, 128])
def test_repeats_are_equal_bit_by_bit(d):
    rng = ct.rng(5)
    q, keys, values = (ct.to_device(normal(rng, 2, 1500, 8, d)) for _ in range(3))
    first = None
    for _ in range(5):
        out = ct.empty((2, 1500, 8, d), "uint16")
        flash.contiguous(q, keys, values, out, causal=True)
        first = out.get() if first is None else first
        np.testing.assert_array_equal(out.get(), first)


def test_nothing_beside_the_rows_is_written():
    rng, d = ct.rng(6), 64
    q, keys, values = (ct.to_device(normal(rng, 1, 70, 2, d)) for _ in range(3))
    wide = ct.to_device(np.full((1, 70, 6, d), NAN, "uint16"))
    flash.contiguous(q, keys, values, wide[:, :, 2:4], causal=True)
    there = wide.get()
    assert (there[:, :, :2] == NAN).all() and (there[:, :, 4:] == NAN).all()
    assert not np.isnan(widened(there[:, :, 2:4])).any()


class Far:
    """An array of bf16 on the GPU with more bytes than ct.empty fills with poison; only what is put there counts."""

    def __init__(self, *shape):
        from pycuda import driver

        self.shape, self.driver = shape, driver
        self.memory = driver.mem_alloc(2 * math.prod(shape))
        self.__cuda_array_interface__ = {
            "shape": shape, "typestr": "<u2", "data": (int(self.memory), False), "version": 3,
        }  # fmt: skip

    def put(self, row, content):
        apart = 2 * math.prod(self.shape[1:])
        self.driver.memcpy_htod(int(self.memory) + row * apart, np.ascontiguousarray(content))


def test_slots_times_their_size_may_pass_32_bits():
    kv_heads, d, block_size, blocks = 8, 128, 16, 140_000
    if ct.device().memory_bytes < 30 << 30:
        pytest.skip("needs 10 GB")
    rng = ct.rng(7)
    keys, values = (Far(blocks * block_size, kv_heads, d) for _ in range(2))
    table = np.array([[blocks - 1, 3, blocks - 2, blocks // 2]], "int32")
    q = normal(rng, 60, kv_heads, d)
    hosts = []
    for array in (keys, values):
        host = normal(rng, 4, block_size, kv_heads, d)
        for block, content in zip(table[0], host):
            array.put(int(block) * block_size, content)
        hosts.append(host.reshape(-1, kv_heads, d)[:60])
    starts, lengths = np.array([0, 60], "int32"), np.array([60], "int32")
    out, lse = ct.empty((60, kv_heads, d), "uint16"), ct.empty((60, kv_heads), "float32")
    work = flash.order(starts, lengths, flash.tile_for(d))
    flash.paged(
        ct.to_device(q), keys, values, out,
        *map(ct.to_device, (starts, lengths, table)), block_size, ct.to_device(work), lse,
    )  # fmt: skip
    check(out.get(), lse.get(), attention(q, *hosts, True, 0, 0.0, None))


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("d", [64, 96, 128, 256])
@pytest.mark.parametrize("shape", [(113, 203), (1024, 1024), (1023, 1024)])
def test_errors_are_at_most_twice_those_of_pytorch(shape, d, causal):
    torch = pytest.importorskip("torch")
    (q_len, k_len), heads, kv_heads = shape, 6, 2
    rng = ct.rng(d)
    q = normal(rng, 4, q_len, heads, d)
    keys, values = (normal(rng, 4, k_len, kv_heads, d) for _ in range(2))
    wanted = np.stack([attention(*x, causal, 0, 0.0, None)[0] for x in zip(q, keys, values)])
    got, _ = run_contiguous(q, keys, values, causal=causal)

    def tensor(bits):  # [batch, heads, tokens, d]
        x = torch.from_numpy(bits.view("int16")).cuda().view(torch.bfloat16).transpose(1, 2)
        return x.repeat_interleave(heads // x.shape[1], dim=1)

    scores = tensor(q) @ tensor(keys).transpose(2, 3) * d**-0.5
    if causal:
        seen = torch.ones(q_len, k_len, dtype=torch.bool, device="cuda").tril(k_len - q_len)
        scores = scores.masked_fill(~seen, float("-inf"))
    theirs = (scores.softmax(dim=-1) @ tensor(values)).transpose(1, 2).double().cpu().numpy()
    error, of_torch = abs(widened(got) - wanted).max(), abs(theirs - wanted).max()
    assert error <= 2 * of_torch, f"{error:.2e}, PyTorch {of_torch:.2e}"


def test_sizes_and_numbers_that_are_refused():
    def e(*shape, dtype="uint16"):
        return ct.empty(shape, dtype)

    good = {
        "q": e(1, 9, 4, 64), "keys": e(1, 9, 2, 64), "values": e(1, 9, 2, 64), "out": e(1, 9, 4, 64),
    }  # fmt: skip
    narrow = {
        "q": e(1, 9, 4, 40), "keys": e(1, 9, 2, 40, dtype="uint8"),
        "values": e(1, 9, 2, 40, dtype="uint8"), "out": e(1, 9, 4, 40),
        "scales": e(2, 2, dtype="float32"),
    }  # fmt: skip
    for wrong, message in (
        ({"keys": e(1, 9, 3, 64), "values": e(1, 9, 3, 64)}, "cannot share"),
        ({"keys": e(2, 9, 2, 64), "values": e(2, 9, 2, 64)}, "cannot have keys"),
        ({"q": e(1, 9, 3, 64)}, "must begin with 256"),
        ({"scale": -1.0}, "scale=-1.0"),
        ({"softcap": -1.0}, "softcap=-1.0"),
        ({"window": -1}, "window=-1"),
        ({"scales": e(2, 2, dtype="float32")}, "scales are for FP8"),
        (narrow, "of FP8 16"),
    ):
        with pytest.raises(ValueError, match=message):
            flash.contiguous(**good | wrong)
    with pytest.raises(ValueError, match="1 to 256"):
        flash.tile_for(257)


def test_order_has_each_tile_once_longest_first():
    for seed in range(100):
        rng = ct.rng(seed)
        tile, count = flash.tile_for(128), rng.integers(1, 9)
        queries = rng.integers(1, 400, count)
        lengths, starts = queries + rng.integers(0, 500, count), np.cumsum([0, *queries])
        work = flash.order(starts, lengths, tile)
        assert len(work) <= flash.most_items(int(starts[-1]), int(count), tile)
        met, keys = [np.zeros(q, int) for q in queries], []
        for sequence, number in work:
            ahead = lengths[sequence] - queries[sequence]
            first = number * tile.bm - ahead % tile.bm
            met[sequence][max(first, 0) : first + tile.bm] += 1
            keys.append(ahead + min(first + tile.bm, queries[sequence]))
        assert all((x == 1).all() for x in met) and keys == sorted(keys, reverse=True)
