"""The ladder of sums on a real GPU: every rung, every block size it claims, hard inputs, and the reader's way in."""

import numpy as np
import pytest

import cudatut as ct
from cudatut.gpu import ladder, sanitizer, trial
from cudatut.tool import SANITIZERS

SUMS = ladder.load_ladder("reduction")


@pytest.fixture(params=SUMS.names)
def rung(request):
    return SUMS[request.param]


@pytest.mark.parametrize("dtype", ["float32", "int32"])
@pytest.mark.parametrize("n", [0, *ct.RAGGED, 100_003, 1 << 20])
def test_every_rung_at_every_block_size(rung, dtype, n):
    problem = SUMS.problem(n=n, dtype=dtype)
    for block in rung.numbers("blocks"):
        problem.check(rung, block)


def test_a_rung_of_few_blocks_must_say_who_takes_longer_arrays():
    flags = SUMS["flags"]
    options = {key: value for key, value in flags.options.items() if key != "long"}
    alone = ladder.Rung("alone", flags.path, flags.kernel, options)
    SUMS.problem(n=1000).check(alone)
    with pytest.raises(ladder.RungError, match="long=RUNG"):
        SUMS.problem(n=1 << 23).launcher(alone)


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
@pytest.mark.parametrize("name", ["flags", "one_launch", "limit", "few_blocks", "shuffle"])
def test_the_same_sum_from_run_to_run(name, n):
    problem = SUMS.problem(n=n, dtype="float32")
    run = problem.launcher(SUMS[name])
    found = set()
    for _ in range(20):
        run()
        found.add(run.out.get()[0].tobytes())
    assert len(found) == 1


@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_more_elements_than_an_int_can_count(dtype):
    n = 2**31 + 7
    if ct.device().memory_bytes < 20 << 30:
        pytest.skip("needs 20 GiB of GPU memory")
    # Random data repeated: the sum of the host's copy takes seconds instead of minutes.
    part = SUMS.problem(n=1 << 20, dtype=dtype).host
    data = np.resize(part, n)
    problem = SUMS.problem(data=data, dtype=dtype)
    for name in SUMS.names:
        problem.check(SUMS[name])


@pytest.mark.parametrize("tool", SANITIZERS)
def test_every_rung_is_clean_under(tool, tmp_path):
    script = tmp_path / "all_rungs.py"
    script.write_text(
        "from cudatut import ladder\nsums = ladder.load_ladder('reduction')\n"
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


def test_a_readers_kernel_is_ranked(tmp_path):
    (tmp_path / "mine.cu").write_text(MINE)
    verdict = trial.attempt("reduction", str(tmp_path / "mine.cu"))
    assert 1 < verdict.rank <= len(verdict.contest.rows) and verdict.hints
    assert verdict.contest["limit"].median_us < verdict.contest["mine"].median_us


def test_a_readers_wrong_kernel_is_not_timed(tmp_path):
    (tmp_path / "mine.cu").write_text(MINE.replace("i < n ? in[i] : ELEMENT(0)", "in[i]"))
    with pytest.raises(ct.CheckError, match="mine, float32, n = "):
        trial.attempt("reduction", str(tmp_path / "mine.cu"))
