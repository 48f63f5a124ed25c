"""examples/tensor/attention/flash_hopper.cu on a CPU: its own text, with stand-ins for PTX (hopper_on_cpu/), in random interleavings.
Results against float64; faults that are planted are noticed."""

from functools import cache

import numpy as np
import pytest
from emulator import HERE, built, ended, expect, fault

from cudatut.book.numbers.bf16 import to_bf16, to_float

PLANS = {  # d, consumers, bn, stages, q_stages, causal, pingpong, overlap, cluster, timed, maxima
    "d64": "64,2,64,2,1,false,true,true",
    "d64 causal": "64,3,96,3,2,true,true,true",
    "d128": "128,2,80,2,2,true,true,false",
    "d128, many keys": "128,2,176,2,1,false,true,true",
    "d128 causal, no turns": "128,2,176,2,1,true,false,true",
    "pairs": "128,2,64,2,1,false,true,true,2",
    "maxima": "64,2,128,2,2,true,true,true,1,false,true",
}


def program_of(plan, folder, change=lambda text: text):
    """The program for a plan, or for a kernel with a change."""
    kernel = "tensor/attention/flash_hopper.cu"
    return built(folder, HERE / "attention.cpp", kernel, change, PLAN=plan)


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    """Each plan's program, built when it is first asked for."""
    return cache(lambda name: program_of(PLANS[name], tmp_path_factory.mktemp("plan")))


def wrong(program, d, causal, shape, blocks, together, seed):
    """What is wrong with results, or None. shape: sequences, q_len, k_len, heads, kv_heads."""
    sequences, q_len, k_len, heads, kv_heads = shape
    rng = np.random.default_rng(seed)
    spread = 32 if seed == 1 else 2  # of scores: with 32 bases turn out too low
    q = to_bf16(spread * rng.standard_normal((sequences, q_len, heads, d)))
    keys, values = (to_bf16(rng.standard_normal((sequences, k_len, kv_heads, d))) for _ in range(2))
    numbers = *shape, blocks, together, seed
    written, bad = ended(program, numbers, q.tobytes() + keys.tobytes() + values.tobytes())
    if bad:
        return bad
    out = to_float(np.frombuffer(written, "uint16", q.size).reshape(q.shape))
    lse = np.frombuffer(written, "float32", offset=2 * q.size).reshape(q.shape[:3])
    seen = np.arange(k_len)[None] <= np.arange(q_len)[:, None] + (
        k_len - q_len if causal else k_len
    )
    some = seen.any(axis=1)
    for s in range(sequences):
        for head in range(heads):
            group = head // (heads // kv_heads)
            scores = (
                to_float(q[s, :, head]).astype("float64") @ to_float(keys[s, :, group]).T * d**-0.5
            )
            scores[~seen] = -np.inf
            most = scores[some].max(axis=1, keepdims=True)
            p = np.exp(scores[some] - most)
            total = p.sum(axis=1, keepdims=True)
            want, mean = (np.zeros((q_len, d)) for _ in range(2))
            want[some] = p / total @ to_float(values[s, :, group])
            mean[some] = p / total @ abs(to_float(values[s, :, group]))
            error = abs(out[s, :, head] - want) - (1.05 * 2**-8 * (mean + abs(want)) + 1e-5)
            if not (error <= 0).all():
                return "results"
            of_sums = np.full(q_len, -np.inf)
            of_sums[some] = (most + np.log(total))[:, 0]
            if not np.allclose(lse[s, :, head], of_sums, rtol=2e-4, atol=2e-4):
                return "log-sum-exps"
    return None


@pytest.mark.sweep
@pytest.mark.parametrize(
    "shape",
    [(2, 113, 203, 2, 1), (1, 1, 239, 2, 2), (1, 450, 300, 2, 1), (1, 300, 511, 1, 1)],
    ids=str,
)
@pytest.mark.parametrize("name", PLANS)
def test_results(programs, name, shape):
    d, causal = int(PLANS[name].split(",")[0]), PLANS[name].split(",")[5] == "true"
    for seed, (blocks, together) in enumerate([(1, 1), (3, 2)]):
        assert (
            wrong(
                programs(name), d, causal, shape, blocks, min(together, shape[0] * shape[3]), seed
            )
            is None
        )


FAULTS = {  # what is replaced, by what, and what is then wrong
    "an empty barrier is not waited for": ("wait(&k_empty[k.stage], k.parity ^ 1);", "", "arrival|results|touched|deadlock"),
    "a parity is not turned": ("wait(&q_full[q.stage][me], q.parity);", "wait(&q_full[q.stage][me], 1);", "deadlock|results|sum"),
    "results are used in flight": ("wait_for_products<0>();\n        arrived(o)", "arrived(o)", "touched|changed|results"),
    "weights are written too early": ("softmax.weights(s, p, power, finish_values)", "[&] { const bool so = softmax.weights(s, p, power, [] {}); finish_values(); return so; }()", "a factor in registers has changed"),
    "a base stays too low": ("if (!softmax.weights(s, p, power, finish_values))", "if (softmax.weights(s, p, power, finish_values), false)", "results|sums"),
    "results do not get their factor": ("rises |= softmax.raise(s, power);", "softmax.raise(s, power);", "results"),
    "the ring of queries stands still": ("q.advance_if(end);", "", "deadlock|results|sum"),
    "values are those of the next step": ("of_values = of_keys;", "of_values = of_keys, of_values.top += BN;", "results"),
    "values are looked for one part further": ("b(of_v + v.stage * TILE, PART)", "b(of_v + v.stage * TILE + 1024, PART)", "results"),
    "a buffer is not released": ("        release_tile(&v_empty[v.stage]);\n", "", "deadlock"),
    "the last turn is not taken": ("if (PINGPONG && me == 0) wait_for_turn(my_turn);", "", "turn is left over"),
    "work is handed over before the last one is read": ("  wait(&slot.empty, parity ^ 1);\n", "", "arrival|results|sum|deadlock|turn"),
    "work is read before it is there": ("  wait(&slot.full, parity);\n  const unsigned word = lane < WORDS ? atomicOr(&slot.words[lane], 0) : 0;\n", "  const unsigned word = lane < WORDS ? atomicOr(&slot.words[lane], 0) : 0;\n  wait(&slot.full, parity);\n", "results|sum|deadlock|turn"),
    "nobody says that work has been read": ("  if (lane == 0) arrive(&slot.empty);\n", "", "deadlock"),
    "the counter is left as it is": ("if (next == (int)gridDim.x + items - 1) *drawn = 0;", "", "counter"),
}  # fmt: skip


@pytest.mark.sweep(3)
@pytest.mark.parametrize("name", FAULTS)
def test_planted_faults_are_noticed(name, tmp_path):
    before, after, expected = FAULTS[name]

    program = program_of(PLANS["d64"], tmp_path, fault(before, after))
    runs = (
        wrong(program, 64, False, (1, 300, k_len, 2, 1), 1, 2, seed)
        for k_len in (450, 60)  # with 60 keys, an item is one step
        for seed in range(3)
    )
    expect(expected, runs)
