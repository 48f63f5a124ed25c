"""The trace on a real GPU: a long kernel, and the copy that waits for it."""

import importlib.util
import os
import subprocess
import sys

import pytest
from perfetto_page import drawn

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


STREAMS = '''
import numpy as np
import pycuda.autoprimaryctx
import pycuda.driver as cuda
from pycuda.compiler import SourceModule

module = SourceModule("""
__device__ void spin(long long cycles) {
  long long begin = clock64();
  while (clock64() - begin < cycles) {}
}
__global__ void first(long long cycles) { spin(cycles); }
__global__ void beside(long long cycles) { spin(cycles); }
__global__ void second(long long cycles) { spin(cycles); }
__global__ void last(long long cycles) { spin(cycles); }
""")
first, beside, second, last = (module.get_function(name) for name in ("first", "beside", "second", "last"))
a, b, free = cuda.Stream(), cuda.Stream(), cuda.Stream(1)
x, zeros = cuda.mem_alloc(4096), cuda.pagelocked_zeros(1024, np.float32)


def launch(kernel, cycles, stream=None):
    kernel(np.int64(cycles), grid=(1, 1), block=(1, 1, 1), stream=stream)


for kernel in (first, beside, second, last):  # the first launch of each takes longer
    launch(kernel, 1)
cuda.Context.synchronize()
launch(first, 40_000_000, a)
launch(beside, 80_000_000, free)
done = cuda.Event().record(a)
assert not done.query()
b.wait_for_event(done)
launch(second, 4_000_000, b)
launch(last, 4_000_000)
cuda.memcpy_htod_async(x, zeros, a)
cuda.Context.synchronize()
'''


def test_a_timeline_of_two_streams_and_an_event(tmp_path):
    """The file is what Perfetto draws (tests/support/perfetto_page.py), with the arrows that this program has to have."""
    (tmp_path / "streams.py").write_text(STREAMS)
    command = [sys.executable, "-m", "cudatut", "trace", "--perfetto", "t.json", "streams.py"]
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=tmp_path, env=environment(), timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert "GPU work" in done.stdout and f"The timeline is in {tmp_path / 't.json'}." in done.stdout
    assert sorted(path.name for path in tmp_path.iterdir()) == ["streams.py", "t.json"]
    found = drawn((tmp_path / "t.json").read_bytes())
    assert found.owners == ["host: streams.py", "GPU 0"], found.owners
    assert found.tracks[:2] == ["thread 1", "thread 1 waits"], found.tracks
    # Each kernel's second launch, and the stream that it was in.
    bars = {bar.name: bar for bar in found.bars if bar.track.startswith("stream")}
    of = {name: bars[name].track for name in ("first", "beside", "second", "last")}
    assert len({*of.values()}) == 4 and {*of.values()} <= {*found.tracks[2:]}, found.tracks
    assert of["last"].endswith("(default)") and of["beside"].endswith("(non-blocking)")
    assert bars["copy HtoD"].track == of["first"] and bars["copy HtoD"].args["bytes"] == 4096
    assert bars["first"].end - bars["first"].start > 5e6
    # An event, and the default stream both ways; nothing of the non-blocking stream, nor of what the host had waited for.
    assert found.between("has to come after") == {
        ("first", "second"), ("second", "last"), ("last", "copy HtoD"),
    }  # fmt: skip
    assert bars["second"].start >= bars["first"].end and bars["beside"].start < bars["first"].end
    asked = found.between("asked for")
    assert {("cuLaunchKernel", name) for name in of} <= asked, asked
    # The last call stood until the longest kernel was done.
    assert ("beside", "after beside") in found.between("waited for")
    assert "waits for beside" in found.on("thread 1 waits")
    assert "cuCtxSynchronize" in found.on("thread 1")
