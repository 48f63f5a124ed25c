"""The trace on a real GPU: a long kernel, and the copy that waits for it."""

import importlib.util
import os
import subprocess
import sys

import pytest

import cudatut as ct
from cudatut.tool import environment

if importlib.util.find_spec("cupti") is None:
    pytest.skip("needs cupti-python", allow_module_level=True)

pytestmark = pytest.mark.xdist_group("profilers")  # of which the driver serves one at a time

PROGRAM = '''
import sys
import numpy as np
import pycuda.autoprimaryctx
import pycuda.driver as cuda
from pycuda.compiler import SourceModule

spin = SourceModule("""
__global__ void spin(long long cycles, int *out) {
  long long begin = clock64();
  while (clock64() - begin < cycles) {}
  out[threadIdx.x] = threadIdx.x;
}
""").get_function("spin")
n = 1 << 20
d = cuda.mem_alloc(4 * n)
cuda.memcpy_htod(d, np.zeros(n, np.int32))
spin(np.int64(40_000_000), d, grid=(1, 1), block=(32, 1, 1))
out = np.empty(n, np.int32)
cuda.memcpy_dtoh(out, d)
print("correct:", np.array_equal(out[:32], np.arange(32)), sys.argv[1:])
'''


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "spin.py"
    path.write_text(PROGRAM)
    return path


def holds(found):
    spin, call, copied = found["spin"], found["cuMemcpyDtoH"], found["copy DtoH"]
    assert spin.calls == 1 and spin.total_ms > 5
    assert copied.bytes == 4 << 20 and found["copy HtoD"].bytes == 4 << 20
    # The call stood while the kernel ran, and that is what it is said to have waited for.
    assert call.total_ms > 0.95 * spin.total_ms
    assert call.waited_for == "spin" and 0.9 * spin.total_ms < call.waiting_ms <= call.total_ms
    assert found["cuLaunchKernel"].total_ms < 0.2 * spin.total_ms
    assert found["cuLaunchKernel"].waiting_ms == 0
    makers = [row.name for row in found.api if row.waited_for == "made the context"]
    assert makers == ["cuDevicePrimaryCtxRetain"]


def test_a_copy_waits_for_a_kernel(script, capsys):
    holds(ct.trace(str(script)))
    out = capsys.readouterr().out
    assert "correct: True []" in out and "GPU work" in out and "API calls" in out
    holds(ct.trace(source=PROGRAM))


def test_the_command(script, tmp_path):
    command = [sys.executable, "-m", "cudatut", "trace", "spin.py", "a", "--b"]
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=tmp_path, env=environment(), timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("correct: True ['a', '--b']\n\nGPU work\n")
    line = next(line for line in done.stdout.splitlines() if line.startswith("  cuMemcpyDtoH"))
    assert line.endswith(" spin")


def test_a_script_that_fails_is_traced_up_to_there(tmp_path):
    path = tmp_path / "fails.py"
    path.write_text(PROGRAM + "\n1 / 0\n")
    command = [sys.executable, "-m", "cudatut", "trace", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment(), timeout=120)
    assert done.returncode == 1
    assert "ZeroDivisionError" in done.stderr and "runpy" not in done.stderr
    assert " spin" in done.stdout
    with pytest.raises(ct.CudatutError, match="ended with status 1"):
        ct.trace(str(path))


def test_a_program_without_a_gpu_call(tmp_path):
    path = tmp_path / "nothing.py"
    path.write_text("print(1)")
    command = [sys.executable, "-m", "cudatut", "trace", str(path)]
    done = subprocess.run(
        command, capture_output=True, text=True, env=dict(os.environ) | environment()
    )
    assert done.returncode == 0, done.stderr
    assert "no call of the CUDA API" in done.stdout or "GPU work" not in done.stdout
