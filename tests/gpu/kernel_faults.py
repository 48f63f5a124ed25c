"""Planted kernel faults: each is a wrong kernel, how it is launched, and what has to notice it.

`launch` runs one of them and checks its output: that is what the sanitizers watch.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

import cudatut as ct

N = 1000  # no multiple of a block or a warp
BLOCK = 256


@dataclass(frozen=True)
class Fault:
    """caught_by: 'check' (wrong values), 'unwritten', 'nan', 'zone', or a sanitizer's name."""

    name: str
    caught_by: str
    source: str
    run: Callable[[ct.Kernel], None]


def _x(n: int = N, dtype: str = "float32") -> np.ndarray:
    return ct.rng(7).uniform(1, 2, n).astype(dtype)


def _map(
    n: int = N, grid: int = ct.cdiv(N, BLOCK), expected=lambda x: 2 * x, size: int | None = None
):
    """A launch of k(x, out, n) whose output should be expected(x)."""

    def run(kernel: ct.Kernel) -> None:
        host = _x(n)
        x, out = ct.to_device(host), ct.empty(size or n, "float32")
        kernel(x, out, n, grid=grid, block=BLOCK)
        ct.check(out, expected(host))

    return run


def _total(dtype: str = "float32", rtol: float = 1e-4):
    """A launch of k(x, out, n) whose single output should be the sum of x."""

    def run(kernel: ct.Kernel) -> None:
        host = _x(N, dtype)
        x, out = ct.to_device(host), ct.to_device(np.zeros(1, dtype))
        kernel(x, out, N, grid=ct.cdiv(N, BLOCK), block=BLOCK)
        ct.check(out, host.astype("float64").sum(), rtol=rtol)

    return run


def _matrix(kernel: ct.Kernel) -> None:
    host = _x(30 * 50).reshape(30, 50)
    x, out = ct.to_device(host), ct.empty((30, 50), "float32")
    kernel(x, out, 30, 50, grid=(4, 4), block=(16, 16))
    ct.check(out, 2 * host)


def _two_launches(kernel: ct.Kernel) -> None:
    first, second = _x(), _x()[::-1].copy()
    out = ct.empty(N, "float32")
    for host in (first, second):
        kernel(ct.to_device(host), out, N, grid=ct.cdiv(N, BLOCK), block=BLOCK)
    ct.check(out, 2 * second)


def _offset(kernel: ct.Kernel) -> None:
    host = _x()
    x, out = ct.to_device(host), ct.empty(N, "float32")
    kernel(x, out, N, grid=1, block=64)
    ct.check(out[:64], 2 * host[1:65])


def _blocks(n: int = 1024):
    return _map(n, n // BLOCK, lambda x: x.reshape(-1, BLOCK)[:, ::-1].reshape(-1))


_HEAD = 'extern "C" __global__ void k(const float *x, float *out, int n) {\n  int i = blockIdx.x * blockDim.x + threadIdx.x;\n'

FAULTS = [
    Fault("off-by-one bound", "zone", _HEAD + "  if (i <= n) out[i] = 2 * x[i];\n}", _map()),
    Fault("write past the end, no bound", "zone", _HEAD + "  out[i] = 2 * x[i];\n}", _map()),
    Fault("write before the start", "zone", _HEAD + "  if (i < n) out[i - 1] = 2 * x[i];\n}", _map()),
    Fault("unwritten tail: grid rounded down", "unwritten", _HEAD + "  if (i < n) out[i] = 2 * x[i];\n}", _map(grid=N // BLOCK)),
    Fault("unwritten element: bound n - 1", "unwritten", _HEAD + "  if (i < n - 1) out[i] = 2 * x[i];\n}", _map()),
    Fault("stale input: kept from an earlier launch", "check",
          "__device__ float kept[4096];\n__device__ int filled;\n" + _HEAD +
          "  if (i >= n) return;\n  if (!filled) kept[i] = x[i];\n  out[i] = 2 * kept[i];\n  if (i == n - 1) filled = 1;\n}",
          _two_launches),
    Fault("wrong stride: rows for columns", "check",
          'extern "C" __global__ void k(const float *x, float *out, int rows, int cols) {\n'
          "  int c = blockIdx.x * blockDim.x + threadIdx.x, r = blockIdx.y * blockDim.y + threadIdx.y;\n"
          "  if (r < rows && c < cols) out[r * cols + c] = 2 * x[r * rows + c];\n}", _matrix),
    Fault("NaN from 0 / 0", "nan", _HEAD + "  if (i < n) out[i] = 2 * x[i] + (i == 777 ? (x[i] - x[i]) / (x[i] - x[i]) : 0);\n}", _map()),
    Fault("accumulates into memory nobody set", "nan", _HEAD + "  if (i < n) out[i] += 2 * x[i];\n}", _map()),
    Fault("lost updates: sum without atomics", "check", _HEAD + "  if (i < n) out[0] += x[i];\n}", _total()),
    Fault("sum in half precision", "check",
          "#include <cuda_fp16.h>\n" + _HEAD + "  if (i < n) out[i] = __half2float(__float2half(x[i]) * __float2half(2.0f));\n}", _map()),
    Fault("integer overflow", "check",
          'extern "C" __global__ void k(const int *x, int *out, int n) {\n'
          "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n  if (i < n) atomicAdd(out, x[i] * 2000000);\n}",
          lambda kernel: _overflow(kernel)),
    Fault("input overwritten in place", "check", _HEAD + "  if (i < n) { float v = x[i]; ((float *)x)[(i * 7) % n] = 0; out[i] = 2 * x[i] + 0 * v; }\n}", _map()),
    Fault("missing barrier", "racecheck",
          _HEAD + "  __shared__ float tile[256];\n  tile[threadIdx.x] = x[i];\n  out[i] = tile[blockDim.x - 1 - threadIdx.x];\n}", _blocks()),
    Fault("warp-synchronous sum without __syncwarp", "racecheck",
          _HEAD + "  __shared__ volatile float s[64];\n  s[threadIdx.x % 64] = 0;\n  __syncthreads();\n  if (threadIdx.x < 32) {\n"
          "    s[threadIdx.x] = x[i];\n    s[threadIdx.x] += s[threadIdx.x + 16];\n    s[threadIdx.x] += s[threadIdx.x + 8];\n"
          "    out[i] = s[threadIdx.x];\n  }\n}", _blocks()),
    Fault("barrier in a divergent branch", "synccheck",
          _HEAD + "  __shared__ float tile[256];\n  tile[threadIdx.x] = x[i];\n  if (threadIdx.x < 100) __syncthreads();\n"
          "  out[i] = tile[threadIdx.x];\n}", _map(1024, 4, lambda x: x)),
    Fault("read past the end", "memcheck", _HEAD + "  if (i < n) out[i] = x[i] + fmaxf(x[i], fminf(x[i], x[i + 1]));\n}", _map()),
    Fault("write far past the end", "memcheck", _HEAD + "  if (i < n) out[i] = 2 * x[i];\n  if (i == 0) out[n + (1 << 20)] = 1;\n}", _map()),
    Fault("shared memory overrun", "memcheck",
          _HEAD + "  __shared__ float tile[256];\n  tile[threadIdx.x + 4096 * (n > 0)] = 1;\n  if (i < n) out[i] = 2 * x[i] + 0 * tile[0];\n}", _map()),
    Fault("misaligned vector load", "memcheck",
          _HEAD + "  float4 v = *(const float4 *)(x + i + 1);\n  out[i] = v.x + fmaxf(v.x, fminf(v.x, v.y + v.z + v.w));\n}", _offset),
    Fault("reads what nothing wrote", "initcheck", _HEAD + "  if (i < n) out[i] += 2 * x[i];\n}", _map()),
]  # fmt: skip


def _overflow(kernel: ct.Kernel) -> None:
    host = ct.rng(7).integers(1, 9, N).astype("int32")
    x, out = ct.to_device(host), ct.to_device(np.zeros(1, "int32"))
    kernel(x, out, N, grid=ct.cdiv(N, BLOCK), block=BLOCK)
    ct.check(out, np.array([host.astype("int64").sum() * 2_000_000]))


CONTROL = Fault("control: nothing wrong", "", _HEAD + "  if (i < n) out[i] = 2 * x[i];\n}", _map())


def launch(name: str) -> None:
    (fault,) = (f for f in [*FAULTS, CONTROL] if f.name == name)
    try:
        fault.run(ct.Kernel(fault.source, "k"))
    except (ct.CheckError, Exception) as error:  # the sanitizer's report is what counts here
        print(f"{type(error).__name__}: {error}")
