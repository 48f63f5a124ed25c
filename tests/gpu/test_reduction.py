"""The ladder of sums on a real GPU: every rung, every block size it claims, hard inputs, and the reader's way in."""

from dataclasses import replace

import numpy as np
import pytest

import cudatut as ct
from cudatut.book.reduction.ladder.ladder import long_rung
from cudatut.book.reduction.ladder.large import Repeated
from cudatut.gpu import ladder, sanitizer, trial
from cudatut.tool import SANITIZERS

SUMS = ladder.load_ladder("reduction")
TRIED = ("limit_walk", "limit_draw", "limit_serial")
ONE_LAUNCH = ("one_launch", "limit", "bulk", "flags")


@pytest.fixture(params=SUMS.names)
def rung(request):
    return SUMS[request.param]


@pytest.mark.parametrize("dtype", ["float32", "int32"])
@pytest.mark.parametrize("n", [0, *ct.RAGGED, 100_003, 1 << 20])
def test_every_rung_at_every_block_size(rung, dtype, n):
    problem = SUMS.problem(n=n, dtype=dtype)
    for block in rung.numbers("blocks"):
        problem.check(rung, block)


@pytest.mark.parametrize("name", TRIED)
@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_every_attempt(name, dtype):
    rung = ladder.read_rung(f"reduction/one_launch/{name}.cu")
    for n in (0, *ct.RAGGED, 1 << 20):
        SUMS.problem(n=n, dtype=dtype).check(rung)


def test_flags_leaves_to_another_rung_what_a_few_blocks_cannot_do():
    flags = SUMS["flags"]
    short, limit = SUMS.problem(n=1 << 22).plan(flags), SUMS.problem(n=(1 << 22) + 4).plan(flags)
    assert short.rung.name == "flags" and short.grid(1 << 22) == 256
    assert limit.rung.name in ("limit", "bulk")


def test_on_a_gpu_that_lacks_the_copy_engine_limit_stands_in(monkeypatch):
    monkeypatch.setattr(ct, "supports", lambda capability, requires: requires == "sm_75")
    assert SUMS.problem(n=1 << 23).plan(SUMS["bulk"]).rung.name == "limit"


@pytest.mark.parametrize("gigabytes,expected", [(3352, "limit"), (4814, "bulk"), (320, "limit")])
def test_the_rung_for_long_arrays_follows_from_the_bandwidth(gigabytes, expected, monkeypatch):
    gpu = replace(ct.device(), sm_count=132, max_threads_per_sm=2048, bus_bits=8)
    gpu = replace(gpu, memory_clock_khz=gigabytes * 10**6 // 2)
    monkeypatch.setattr(ct, "device", lambda: gpu)
    assert long_rung().name == expected


def test_a_view_that_begins_at_an_odd_place_is_refused(rung):
    x = ct.to_device(SUMS.problem(n=1001, dtype="int32").host)
    view = SUMS.problem(data=x[1:])
    if rung.name in ("limit", "bulk", "flags"):
        with pytest.raises(ct.LaunchError, match="no multiple of 16"):
            view.launcher(rung)
    else:
        view.check(rung)
    SUMS.problem(data=x[4:]).check(rung)


def test_attempts_refuse_such_a_view_too():
    view = SUMS.problem(data=ct.to_device(np.ones(1001, "int32"))[1:])
    for name in TRIED:
        with pytest.raises(ct.LaunchError, match="no multiple of 16"):
            view.launcher(ladder.read_rung(f"reduction/one_launch/{name}.cu"))


SPECIAL = {
    "all NaN": np.full(1000, np.nan, "float32"),
    "one NaN": np.r_[np.ones(777, "float32"), np.float32(np.nan), np.ones(222, "float32")],
    "+inf": np.r_[np.ones(500, "float32"), np.float32(np.inf), np.ones(500, "float32")],
    "-inf": np.r_[np.ones(500, "float32"), np.float32(-np.inf), np.ones(500, "float32")],
    "both infinities": np.r_[np.float32([np.inf, -np.inf]), np.ones(999, "float32")],
    "denormals": np.full(1_000_001, 1e-45, "float32"),
    "alternating": (np.arange(1_000_002) % 2 * 2 - 1).astype("float32") * 1e6,
}


@pytest.mark.parametrize("name", SPECIAL)
def test_special_values(rung, name):
    SUMS.problem(data=SPECIAL[name], dtype="float32").check(rung)


def test_integer_sums_wrap_as_the_hardware_does(rung):
    SUMS.problem(data=np.full(1_000_003, 2**30 + 1, "int32"), dtype="int32").check(rung)


@pytest.mark.parametrize("n", [1_000_003, 10_000_019])
@pytest.mark.parametrize("name", [*ONE_LAUNCH, "few_blocks", "shuffle"])
def test_the_same_sum_from_run_to_run(name, n):
    problem = SUMS.problem(n=n, dtype="float32")
    run = problem.launcher(SUMS[name])
    found = set()
    for _ in range(20):
        run()
        found.add(run.out.get()[0].tobytes())
    assert len(found) == 1


@pytest.mark.parametrize("n", [2**31 - 1, 2**31, 2**31 + 7])
@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_more_elements_than_an_int_can_count(dtype, n):
    if ct.device().memory_bytes < 20 << 30:
        pytest.skip("needs 20 GiB of GPU memory")
    problem = Repeated(n, dtype)  # made on the GPU: the host would take minutes
    for name in SUMS.names:
        problem.check(SUMS[name])


def both_streams(rung, n, workspace=None, repeats=100):
    """Sums of two arrays, each on a stream of its own, many at a time: how many of them are wrong.

    workspace: what stands for the ladder's own `_workspace`.
    """
    import pycuda.driver as cuda

    problems = [SUMS.problem(n=n, dtype="int32", seed=seed) for seed in (0, 1)]
    if workspace:
        for problem in problems:
            problem._workspace = workspace
    streams = [cuda.Stream(), cuda.Stream()]
    runs = [problem.launcher(rung, stream=s) for problem, s in zip(problems, streams)]
    kept = [ct.empty(repeats, "int32") for _ in runs]
    for run in runs:
        run()  # compiled and loaded
    ct.synchronize()
    for _ in range(repeats):  # the GPU is busy until all launches are enqueued
        ct.flush_l2()
    for k in range(repeats):
        for run, out, stream in zip(runs, kept, streams):
            run()
            cuda.memcpy_dtod_async(int(out.gpudata) + 4 * k, run.out.gpudata, 4, stream)
    ct.synchronize()
    return sum(int((out.get() != problem.expected).sum()) for out, problem in zip(kept, problems))


@pytest.mark.parametrize("n", [60_000, 1_000_003, 5_000_011])
@pytest.mark.parametrize("name", ["shuffle", *ONE_LAUNCH])
def test_launches_that_overlap_on_two_streams(name, n):
    assert both_streams(SUMS[name], n) == 0


@pytest.mark.alone  # other processes take turns with this one's streams, which then seldom overlap
@pytest.mark.parametrize("name,n", [("one_launch", 60_000), ("limit", 1_000_003)])
def test_that_test_notices_a_shared_ticket(name, n):
    # Not `flags`: with one state for both streams it may wait for ever.
    shared = SUMS.problem(n=n, dtype="int32")._workspace(256)
    assert any(both_streams(SUMS[name], n, workspace=lambda blocks: shared) for _ in range(10))


DELAY = """
// Some blocks are held up, others not, and each time others.
__device__ __forceinline__ void disturb() {
  unsigned ns;
  asm volatile("mov.u32 %0, %%globaltimer_lo;" : "=r"(ns));
  const unsigned dice = (blockIdx.x * 2654435761u ^ ns / 4096 * 40503u) >> 7;
  if (dice % 4 == 0) __nanosleep(dice % 8192);
}
"""
TICKET = "    partials[blockIdx.x] = partial;\n"
DISTURBED = {
    "one_launch before its sum is stored": ("one_launch", TICKET, "disturb();\n" + TICKET),
    "one_launch before it draws": ("one_launch", TICKET, TICKET + "disturb();\n"),
    "limit before its sum is stored": ("limit", TICKET, "disturb();\n" + TICKET),
    "limit before it draws": ("limit", TICKET, TICKET + "disturb();\n"),
    "flags before it posts": (
        "flags",
        "  if (block > 0) {\n",
        "disturb();\n  if (block > 0) {\n",
    ),
    "flags before it knows the launch": (
        "flags",
        "  // The number of this launch arrives",
        "disturb();\n  // The number of this launch arrives",
    ),
    "bulk before it asks": (
        "bulk",
        "  const auto ask = ",
        "disturb();\n  const auto ask = ",
    ),
    "bulk before a stage is free": (
        "bulk",
        "    __syncthreads();  // no thread reads",
        "if (threadIdx.x % 64 == 0) disturb();\n    __syncthreads();  // no thread reads",
    ),
}


@pytest.mark.parametrize("case", DISTURBED)
def test_a_handover_in_a_disturbed_order(case, tmp_path):
    """Blocks are held up at random, and the data change from launch to launch, so that an old partial sum is seen."""
    name, old, new = DISTURBED[case]
    folder = ct.paths.examples_dir() / "reduction" / "ladder"
    text = (folder / f"{name}.cu").read_text()
    assert text.count(old) == 1
    text = text.replace(old, new).replace('#include "limit.cu"', f'#include "{folder}/limit.cu"')
    (tmp_path / f"{name}.cu").write_text(DELAY + text)
    rung = ladder.read_rung(tmp_path / f"{name}.cu")
    for n in (60_000, 3_000_001):
        problem = SUMS.problem(n=n, dtype="int32")
        plan = problem.plan(rung)
        if plan.rung.name != name:
            continue
        run, others = problem.launcher(rung), [problem.host, -problem.host, problem.host * 3]
        for turn in range(30):
            problem.x.set(others[turn % 3])
            run()
            expected = others[turn % 3].sum(dtype="int64").astype("int32")
            assert run.out.get()[0] == expected, (case, n, turn)


@pytest.mark.parametrize("tool", SANITIZERS)
def test_every_rung_is_clean_under(tool, tmp_path):
    script = tmp_path / "all_rungs.py"
    script.write_text(
        "from cudatut.gpu import ladder\nsums = ladder.load_ladder('reduction')\n"
        "for name in sums.names:\n"
        "    for dtype in ('float32', 'int32'):\n"
        "        for n in (0, 1, 31, 33, 4099, 300_007):\n"
        "            sums.problem(n=n, dtype=dtype).check(sums[name])\n"
    )
    found = sanitizer.run(script, tool)
    assert found.errors == 0, found.log


MINE = """// @rung kernel=mine block=256 per_thread=1
#ifndef ELEMENT
#define ELEMENT float
#endif
extern "C" __global__ void mine(const ELEMENT* in, ELEMENT* out, long long n) {
  __shared__ ELEMENT s[256];
  long long i = blockIdx.x * 256ll + threadIdx.x;
  s[threadIdx.x] = i < n ? in[i] : ELEMENT(0);
  __syncthreads();
  for (int h = 128; h > 0; h /= 2) {
    if (threadIdx.x < h) s[threadIdx.x] += s[threadIdx.x + h];
    __syncthreads();
  }
  if (threadIdx.x == 0) out[blockIdx.x] = s[0];
}
"""


@pytest.mark.alone  # it compares times
def test_a_readers_kernel_is_ranked(tmp_path):
    (tmp_path / "mine.cu").write_text(MINE)
    verdict = trial.attempt("reduction", str(tmp_path / "mine.cu"))
    assert 1 < verdict.rank <= len(verdict.contest.rows) and verdict.hints
    assert verdict.contest["limit"].median_us < verdict.contest["mine"].median_us


def test_a_readers_wrong_kernel_is_not_timed(tmp_path):
    (tmp_path / "mine.cu").write_text(MINE.replace("i < n ? in[i] : ELEMENT(0)", "in[i]"))
    with pytest.raises(ct.CheckError, match="mine, float32, n = "):
        trial.attempt("reduction", str(tmp_path / "mine.cu"))
