"""examples/llm/vllm_kernel/paged_scheme.cu on a CPU (tests/tensor/hopper_on_cpu): its own text, in random interleavings, over
blocks in any order whose free slots hold NaN. Results against float64; faults that are planted are noticed."""

from pathlib import Path

import numpy as np
import pytest
from emulator import built, ended, expect, fault

from cudatut.book.llm.kernels.attention import exact
from cudatut.book.numbers.bf16 import to_bf16, to_float

HERE = Path(__file__).parent
PLANS = {  # d, block, chunks, group, columns, part
    "rows": (64, 16, 0, 1, 0, 0),
    "chunks": (64, 16, 1, 1, 0, 0),
    "groups": (64, 16, 1, 2, 0, 0),
    "columns": (64, 16, 1, 2, 1, 0),
    "parts": (64, 16, 1, 2, 1, 64),
    "blocks of 1": (64, 1, 1, 32, 1, 0),
    "blocks of 4": (32, 4, 1, 8, 1, 0),
    "blocks of 8": (128, 8, 1, 4, 1, 64),
    "blocks of 32": (96, 32, 1, 1, 1, 0),
}


def program_of(plan, folder, change=lambda text: text):
    """The program for a plan, or for a kernel with a change."""

    def on_one_axis(text):
        for axis, name in (("Idx.y", "_y"), ("Idx.z", "_z"), ("Dim.z", "_parts"), ("Dim.y", "_kv_heads")):  # fmt: skip
            text = text.replace(f"{'block' if 'Idx' in axis else 'grid'}{axis}", f"grid{name}")
        return change(text)

    source = HERE / "hopper_on_cpu/paged_scheme.cpp"
    kernel = "llm/vllm_kernel/paged_scheme.cu"
    return built(folder, source, kernel, on_one_axis, PLAN=",".join(map(str, plan)))


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    return {}, tmp_path_factory


def program(programs, name):
    known, folders = programs
    if name not in known:
        known[name] = program_of(PLANS[name], folders.mktemp("plan"))
    return known[name]


def wrong(program, plan, lengths, heads, kv_heads, seed, room=None):
    """What is wrong with results, or None."""
    d, block, *_, part = plan
    rng = np.random.default_rng(seed)
    lengths = np.asarray(lengths, "int32")
    used = -(-lengths // block)
    numbers = rng.permutation(used.sum() + 3).astype("int32")
    tables = np.full((len(lengths), used.max() + 1), 1 << 20, "int32")  # far beyond the cache
    q = to_bf16(2 * rng.standard_normal((len(lengths), heads, d)))
    keys, values, slots, at = [], [], [], 0
    for row, count, length in zip(tables, used, lengths):
        row[:count] = numbers[at : at + count]
        at += count
        token = np.arange(length)
        slots.append(row[token // block] * block + token % block)
        for kept in (keys, values):
            kept.append(to_bf16(rng.standard_normal((length, kv_heads, d))))
    longest, tokens = int(lengths.max()), int(lengths.sum()) + 1
    none = np.full((1, kv_heads, d), 0x7FFF, "uint16")  # a token without a slot
    room = (part or longest) if room is None else room
    parts = max(1, -(-longest // part)) if part else 1
    sizes = len(lengths), heads, kv_heads, len(numbers) * block, tokens, tables.shape[1]
    arrays = q, *keys, none, *values, none, *slots, [-1], tables, lengths
    kinds = [getattr(x, "dtype", None) == "uint16" for x in arrays]
    data = b"".join(
        np.asarray(x, "uint16" if bits else "int32").tobytes() for x, bits in zip(arrays, kinds)
    )
    written, bad = ended(program, (*sizes, room, parts, d**-0.5, seed), data)
    if bad:
        return bad
    out = to_float(np.frombuffer(written, "uint16", q.size)).reshape(q.shape)
    lse = np.frombuffer(written, "float32", offset=2 * q.size).reshape(q.shape[:2])
    for i, length in enumerate(lengths):
        if length > room and not part:
            if not (np.isnan(out[i]).all() and np.isnan(lse[i]).all()):
                return f"{length} keys in the room of {room}"
            continue
        if not length:
            if out[i].any() or not np.isneginf(lse[i]).all():
                return "no keys, but a result"
            continue
        found, mean = exact.attention(q[i, None], keys[i], values[i])
        group = heads // kv_heads
        scores = np.einsum("hd,khd->hk", to_float(q[i]).astype("float64"), np.repeat(to_float(keys[i]), group, 1))  # fmt: skip
        sums = np.log(np.exp(scores * d**-0.5).sum(axis=1))
        if not (np.abs(out[i] - found[0]) <= mean[0] / 200 + 1e-5).all():
            return f"wrong results with {length} keys"
        if not np.allclose(lse[i], sums, atol=1e-4):
            return f"a wrong log-sum-exp with {length} keys"
    return None


@pytest.mark.sweep(4)
@pytest.mark.parametrize("name", PLANS)
def test_any_number_of_keys(programs, name):
    plan = PLANS[name]
    lengths = [0, 1, plan[1] - 1, plan[1] + 1, 63, 64, 65, 150]
    assert wrong(program(programs, name), plan, lengths, 4, 2, seed=0) is None


def test_a_sequence_that_has_no_room_gets_nan_and_harms_no_other(programs):
    assert wrong(program(programs, "columns"), PLANS["columns"], [40, 33, 7], 2, 1, 1, room=34) is None  # fmt: skip


FAULTS = {
    "a barrier before the maximum": ("of_block<true>(most, of_warp)", "most", "columns"),
    "values that may be NaN": ("if (first + slot + j < end)", "if (true)", "columns"),
    "values that may be NaN, in rows": ("if (first + j < end)", "if (true)", "rows"),
    "keys beyond the last": ("if (token < end) {\n      const", "{\n      const", "rows"),
    "weights of free slots": ("i < count ? expf(logits[i] - most) : 0", "expf(logits[i] - most)", "rows"),
    "the group's sum": ("away = GROUP / 2; away > 0", "away = GROUP / 2; away > GROUP", "columns"),
    "lanes of a row": ("away = Of::PER_ROW / 2; away > 0", "away = 0; away > 0", "columns"),
    "the barrier before the sums": ("__syncthreads();  // no warp needs", "// no warp needs", "columns"),
    "parts without their weights": ("total += weight * results", "total += results", "parts"),
}  # fmt: skip


@pytest.mark.sweep(3)
@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_noticed(name, tmp_path):
    before, after, of = FAULTS[name]
    changed = program_of(PLANS[of], tmp_path, fault(before, after))
    expect(
        "wrong|deadlock|ended|no keys",
        (wrong(changed, PLANS[of], [150, 65, 33, 1], 2, 1, seed) for seed in range(12)),
    )
