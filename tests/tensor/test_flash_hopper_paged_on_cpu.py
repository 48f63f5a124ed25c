"""examples/llm/kernels/attention/flash_hopper_paged.cu on a CPU: its own text, with stand-ins for PTX (hopper_on_cpu/), in random
interleavings, over blocks in any order between blocks of NaN. Results against float64; faults that are planted are noticed."""

from functools import cache

import numpy as np
import pytest
from emulator import HERE, built, ended, expect, fault

from cudatut.book.llm.kernels.attention import flash
from cudatut.book.numbers.bf16 import to_bf16, to_float

NAN = 0x7FFF  # as bf16
PLANS = {  # d, consumers, bn, stages, q_stages, block, pingpong
    "d64": "64,2,128,2,2,16,true",
    "three": "64,3,128,2,2,32,true",
    "one buffer": "64,2,64,2,1,8,false",
    "d128": "128,2,128,2,2,16,true",
}


def program_of(plan, folder, change=lambda text: text):
    """The program for a plan, or for a kernel with a change."""
    kernel = "llm/kernels/attention/flash_hopper_paged.cu"
    return built(folder, HERE / "paged_attention.cpp", kernel, change, PLAN=plan)


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    """Each plan's program, built when it is first asked for."""
    return cache(lambda name: program_of(PLANS[name], tmp_path_factory.mktemp("plan")))


def of_sequence(q, keys, values):
    """Of one sequence and head in float64: results, the mean of |values| that errors scale with, log-sum-exps."""
    d = q.shape[1]
    scores = q.astype("float64") @ keys.T * d**-0.5
    seen = np.arange(len(keys)) <= np.arange(len(q))[:, None] + len(keys) - len(q)
    scores[~seen] = -np.inf
    most = scores.max(axis=1, keepdims=True)
    p = np.exp(scores - most)
    total = p.sum(axis=1, keepdims=True)
    return p / total @ values, p / total @ abs(values), (most + np.log(total))[:, 0]


def wrong(program, plan, batch, heads, kv_heads, blocks, seed, spare_rows=3):
    """What is wrong with results, or None. batch: (queries, keys) of each sequence."""
    d, consumers, _, _, _, block = map(int, plan.split(",")[:6])
    rng = np.random.default_rng(seed)
    spread = 32 if seed == 1 else 2  # of scores: with 32 bases turn out too low
    starts = np.cumsum([2, *(n for n, _ in batch)]).astype("int32")  # two rows before are of nobody
    lengths = np.array([n for _, n in batch], "int32")
    used = -(-lengths // block)
    numbers = rng.permutation(used.sum() + 3).astype("int32")
    tables = np.full((len(batch), used.max() + 2), -1, "int32")
    q = to_bf16(spread * rng.standard_normal((starts[-1] + 3, heads, d)))
    cache = np.full((2, len(numbers) * block, kv_heads, d), NAN, "uint16")
    at = 0
    for row, count, length in zip(tables, used, lengths):
        row[:count] = numbers[at : at + count]
        at += count
        token = np.arange(length)
        slots = row[token // block] * block + token % block
        cache[:, slots] = to_bf16(rng.standard_normal((2, length, kv_heads, d)))
    tile = flash.Tile(d, 64 * consumers, 0, 0, 0)
    work = flash.order(starts, lengths, tile)
    work = np.concatenate([work, np.full((spare_rows, 2), -1, "int32")])
    sizes = len(q), heads, kv_heads, cache.shape[1], len(batch), len(work), tables.shape[1]
    arrays = q, *cache, starts, lengths, tables, work
    data = b"".join(np.ascontiguousarray(x).tobytes() for x in arrays)
    written, bad = ended(program, (*sizes, blocks, seed), data)
    if bad:
        return bad
    bits = np.frombuffer(written, "uint16", q.size).reshape(q.shape)
    lse = np.frombuffer(written, "float32", offset=2 * q.size).reshape(q.shape[:2])
    nobody = np.r_[0:2, starts[-1] : len(q)]
    if (bits[nobody] != NAN).any() or not np.isnan(lse[nobody]).all():
        return "rows of nobody"
    out = to_float(bits)
    for i, length in enumerate(lengths):
        own, token = slice(starts[i], starts[i + 1]), np.arange(length)
        slots = tables[i][token // block] * block + token % block
        for head in range(heads):
            keys, values = to_float(cache[:, slots, head // (heads // kv_heads)]).astype("float64")
            want, mean, of_sums = of_sequence(to_float(q[own, head]), keys, values)
            error = abs(out[own, head] - want) - (1.05 * 2**-8 * (mean + abs(want)) + 1e-5)
            if not (error <= 0).all():
                return "results"
            if not np.allclose(lse[own, head], of_sums, rtol=2e-4, atol=2e-4):
                return "log-sum-exps"
    return None


BATCHES = {
    "prompts": [(37, 37), (200, 200), (129, 129), (1, 1)],
    "prefixes": [(5, 18), (70, 263), (1, 128), (130, 259)],
    "one": [(300, 300)],
}


@pytest.mark.sweep
@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("name", PLANS)
def test_results(programs, name, batch):
    for seed, (heads, kv_heads, blocks) in enumerate([(3, 1, 1), (2, 2, 4)]):
        assert (
            wrong(programs(name), PLANS[name], BATCHES[batch], heads, kv_heads, blocks, seed)
            is None
        )


def test_more_blocks_than_work(programs):
    assert wrong(programs("d64"), PLANS["d64"], [(9, 30)], 2, 1, 5, 0) is None


FAULTS = {  # what is replaced, by what, and what is then wrong
    "blocks of the next tile": ("tile.blocks[i + j]", "tile.blocks[i + j + 1]", "results|sum"),
    "blocks of another sequence": ("tables + (long long)sequence * width", "tables", "results|sum"),
    "a block lies one block further": ("to + part * PART + (i + j) * BLOCK * 128", "to + part * PART + ((i + j) ^ 1) * BLOCK * 128", "results|sum"),
    "keys of another head": ("w.head * kv_heads / heads * PARTS", "w.head % kv_heads * PARTS", "results|sum"),
    "values of the next step": ("of_values = of_keys;", "of_values = of_keys, of_values.blocks += 1;", "results|deadlock"),
    "bytes that do not come": ("arrive_and_expect(full, tile.count * BLOCK * D * 2);", "arrive_and_expect(full, TILE);", "deadlock"),
    "keys are overwritten": ("wait(empty, parity ^ 1);", "", "arrival|results|touched|deadlock"),
    "values are given back early": ("          wait_for_products<0>();\n          arrived(o), arrived(p);\n          release(&v_empty[v.stage]);", "          release(&v_empty[v.stage]);\n          wait_for_products<0>();\n          arrived(o), arrived(p);", "results|arrival"),
    "a query sees one key more": ("w.keys, w.at + row);", "w.keys, w.at + row + 1);", "results|sum"),
    "a query sees one key less": ("w.keys, w.at + row);", "w.keys, w.at + row - 1);", "results|sum"),
    "whole tiles begin too late": ("min(w.keys, w.at + me * 64 + 1)", "min(w.keys, w.at + me * 64 + 64)", "results|sum"),
    "values that nobody sees stay": ("if (last) clear_values(w.keys % BN);", "", "results"),
    "one value too few is cleared": ("int i = seen * 8 +", "int i = seen * 8 + 8 +", "results"),
    "one value too many is cleared": ("int i = seen * 8 +", "int i = seen * 8 - 8 +", "results"),
    "values are cleared in another buffer": ("(of_v - begin) + v.stage * TILE", "(of_v - begin) + (v.stage ^ 1) * TILE", "results"),
    "rows before the tile": ("first = max(top, 0)", "first = top", "results|nobody|sum|ended with"),
    "rows of the next sequence": ("end = min(top + BM, count)", "end = top + BM", "results|nobody|sum|ended with"),
    "work that is none": ("if (sequence < 0) break;", "", "results|nobody|sum|deadlock|ended|counters"),
    "the counter is left as it is": ("gridDim.x - 1) *drawn = 0;", "gridDim.x - 1) *drawn = 1;", "counters|results|sum"),
    "a base stays too low": ("if (!softmax.weights(s, p, power, finish_values))", "if (softmax.weights(s, p, power, finish_values), false)", "results|sum"),
    "the ring of queries stands still": ("q.advance_if(end);", "", "deadlock|results|sum"),
    "the last turn is not taken": ("if (PINGPONG && me == 0) wait_for_turn(my_turn);", "", "turn is left over"),
}  # fmt: skip


@pytest.mark.sweep(3)
@pytest.mark.parametrize("name", FAULTS)
def test_planted_faults_are_noticed(name, tmp_path):
    before, after, expected = FAULTS[name]
    program = program_of(PLANS["d64"], tmp_path, fault(before, after))
    look(program, expected)


def test_keys_that_are_given_back_early_are_noticed(tmp_path):
    release = "      release(&k_empty[k.stage]);\n"
    start = "                 b.further(kk / 4 * PART + kk % 4 * 32), kk > 0);\n"
    early, late = fault(start, start + release), fault("arrived(s);\n" + release, "arrived(s);\n")
    program = program_of(PLANS["d64"], tmp_path, lambda text: early(late(text)))
    look(program, "results|sum|arrival|deadlock")


def look(program, expected):
    """Until one of a few runs shows what is expected."""
    batch = [(70, 391), (129, 263), (40, 40)]  # those with many keys are the first to be done
    expect(
        expected,
        (wrong(program, PLANS["d64"], batch, 4, 2, 1 + seed % 2, seed) for seed in range(4)),
    )
