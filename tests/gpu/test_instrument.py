"""The instrument on a GPU: what the host needs stays out of a time, clocks are those of the SMs, rivals are named."""

import statistics
import subprocess
import time

import pytest

import cudatut as ct
from cudatut.gpu import launched, rivals, timing
from cudatut.gpu.gate import gate

pytestmark = pytest.mark.alone  # times are compared, and the clock is asked for

SPIN = """
__global__ void spin(long long cycles) {
  long long begin = clock64();
  while (clock64() - begin < cycles) {}
}
"""


@pytest.fixture(scope="module")
def spin():
    """A launch of a kernel that runs for so many cycles."""
    kernel = ct.Kernel(SPIN, "spin")
    return lambda cycles: lambda: kernel(cycles, grid=ct.device().sm_count, block=32)


def median(launch, **how):
    timing.timed(launch)
    return statistics.median(timing.timed(launch, **how).us for _ in range(9))


@pytest.mark.parametrize("host_ms", [0.06, 0.5, 5])
def test_a_slow_host_is_no_part_of_the_time(spin, host_ms):
    launch = spin(20_000)

    def slow():
        time.sleep(host_ms / 1e3)
        launch()

    run = timing.timed(slow)
    assert run.hidden and run.host_us > 1e3 * host_ms
    assert median(slow) == pytest.approx(median(launch), rel=0.1, abs=2)
    # The control: without the gate and the flush the host's time is in it.
    assert ct.time_once_bare(slow) > 1e3 * host_ms


def test_a_launch_that_waits_for_the_gpu_is_noticed_and_timed(spin):
    launch = spin(20_000)

    def waits():
        launch()
        ct.synchronize()

    run = timing.timed(waits)
    assert not run.hidden and run.us > 5
    result = ct.bench({"waits": waits, "does not": launch}, rounds=5)
    assert result["waits"].waits and not result["does not"].waits


def test_more_launches_than_the_driver_enqueues(spin):
    """The host has to wait for the GPU then, which stands at the gate: it loses patience, and nothing hangs."""
    launch = spin(1_000)
    run = timing.timed(lambda: [launch() for _ in range(3000)])
    assert run.us > 3000 * 0.5


def test_the_gate_is_used_again_after_an_error(spin):
    def fails():
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        timing.timed(fails)
    ct.synchronize()
    assert gate().held()
    assert timing.timed(spin(20_000)).hidden


def test_the_clock_of_the_sms(spin):
    """A kernel that counts cycles itself says which clock it is."""
    cycles = 2_000_000
    runs = [timing.timed(spin(cycles), clock=True) for _ in range(9)]
    mhz = statistics.median(run.mhz for run in runs)
    assert mhz == pytest.approx(cycles / statistics.median(run.us for run in runs), rel=0.02)
    asked = ["nvidia-smi", "--query-gpu=clocks.max.sm", "--format=csv,noheader,nounits"]
    most = float(subprocess.run(asked, capture_output=True, text=True).stdout.splitlines()[0])
    assert 0.1 * most < mhz < 1.02 * most


def test_the_kernels_of_a_rival_are_named_and_nothing_is_slower_afterwards(spin):
    if launched.kernels_of(spin(100)) is None:
        pytest.skip("no cupti-python")
    assert launched.kernels_of(spin(100)) == ["spin"]
    launch = spin(20_000)
    before = median(launch)
    for _ in range(3):
        launched.kernels_of(launch)
    assert median(launch) == pytest.approx(before, rel=0.05, abs=1)


def test_versions_of_rivals():
    x = ct.to_device(ct.rng(0).random(1000, dtype="float32"))
    if not ct.vendor.sum(x):
        pytest.skip("no CUB")
    assert rivals.versions()["CUB"].count(".") == 2
    a = ct.to_device(ct.rng(0).random((64, 64), dtype="float32"))
    if ct.vendor.gemm(a, a, ct.empty((64, 64), "float32")):
        found = rivals.versions()
        assert {"CuPy", "cuBLAS", "cublasLt"} <= set(found)
        assert all(part.strip().count(".") >= 1 for part in found["cuBLAS"].split(","))
