# ---
# jupyter:
#   cudatut:
#     title: {en: "CUTLASS's convolution: solutions", zh: "CUTLASS 的卷积：参考答案"}
#     requires: sm_75
#     timeout_s: 60
# ---

# %% [markdown]
# Channels that are padded; a tile for a layer; and a library in C++ that Python
# calls.

# %% given-1
import numpy as np
import cudatut as ct

# %% solution-1
pad_channels = ct.Kernel(
    """
__global__ void pad_channels(const unsigned short* in, unsigned short* out,
                             long long pixels, int channels, int padded) {
  const long long i = blockIdx.x * 256LL + threadIdx.x;
  if (i >= pixels * padded) return;
  const long long pixel = i / padded;
  const int channel = i % padded;
  out[i] = channel < channels ? in[pixel * channels + channel] : 0;
}
""",
    "pad_channels",
)

# %% check-1
import cudatut as ct

for pixels in ct.RAGGED:
    for channels, padded in ((3, 8), (8, 8), (9, 16), (1, 8)):
        x = (
            ct.rng(pixels)
            .integers(1, 1 << 16, (pixels, channels))
            .astype("uint16")
        )
        out = ct.empty((pixels, padded), "uint16")
        ct.poison(out)
        grid = ct.cdiv(pixels * padded, 256)
        pad_channels(
            ct.to_device(x), out, pixels, channels, padded, grid=grid, block=256
        )
        expected = np.zeros((pixels, padded), "uint16")
        expected[:, :channels] = x
        ct.check(out, expected, name=f"{pixels} pixels, {channels}", rtol=0)

# %% given-2
import numpy as np
import cudatut as ct


# %% solution-2
def choose(tiles, m, n, sms, turn):
    def time(tile):
        pixels, filters = tile
        count = ct.cdiv(m, pixels) * ct.cdiv(n, filters)
        return ct.cdiv(count, sms) * turn(pixels, filters)

    return min(tiles, key=time)


# %% check-2
import cudatut as ct

tiles = [(128, 128), (64, 256), (128, 64), (64, 64)]


def by_area(pixels, filters):
    return pixels * filters


def with_reads(pixels, filters):
    return pixels * filters + 160 * (pixels + filters)


for m, n, sms, turn, expected in (
    (25_088, 128, 132, by_area, (128, 64)),
    (25_088, 128, 132, with_reads, (128, 128)),
    (200_704, 256, 132, with_reads, (128, 128)),
    (33_800, 256, 132, by_area, (64, 64)),
    (33_800, 256, 132, with_reads, (128, 128)),
    (100, 64, 132, with_reads, (64, 64)),
    (64, 256, 1, by_area, (64, 256)),
):
    got = choose(tiles, m, n, sms, turn)
    ct.check(np.array(got), np.array(expected), name=f"{m} x {n}", rtol=0)

# %% given-3
import ctypes
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import cudatut as ct

SOURCE = """
__global__ void scale(float* x, long long n, float factor) {
  const long long i = blockIdx.x * 256LL + threadIdx.x;
  if (i < n) x[i] *= factor;
}

extern "C" int scale_launch(float* x, long long n, float factor,
                            cudaStream_t stream) {
  if (n < 1) return 1;
  scale<<<(n + 255) / 256, 256, 0, stream>>>(x, n, factor);
  return cudaGetLastError();
}
"""


def compiled(source):
    nvcc, folder = ct.find_nvcc(), Path(tempfile.mkdtemp())
    (folder / "scale.cu").write_text(source)
    major, minor = ct.device().compute_capability
    command = [
        nvcc, "--shared", "-Xcompiler", "-fPIC", f"-arch=sm_{major}{minor}",
        *ct.nvcc_flags(nvcc), "-o", folder / "scale.so", folder / "scale.cu",
    ]  # fmt: skip
    env = ct.nvcc_env(nvcc) | {"LD_PRELOAD": ""}
    subprocess.run(list(map(str, command)), env=env, check=True)
    return ctypes.CDLL(str(folder / "scale.so"))


library = compiled(SOURCE)


# %% solution-3
def scale(library, array, factor):
    call = library.scale_launch
    call.argtypes = [
        ctypes.c_void_p,
        ctypes.c_longlong,
        ctypes.c_float,
        ctypes.c_void_p,
    ]
    status = call(int(array.gpudata), array.size, factor, None)
    if status:
        raise RuntimeError(f"scale_launch returned {status}")


# %% check-3
import cudatut as ct

for n in ct.RAGGED:
    x = ct.rng(n).standard_normal(n, dtype="float32")
    array = ct.to_device(x)
    scale(library, array, 2.5)
    ct.check(array, x * np.float32(2.5), name=f"n={n}", rtol=0)
refused = 0
try:
    scale(library, ct.empty(0, "float32"), 2.5)
except RuntimeError:
    refused = 1
ct.check([refused], [1], name="an error is raised", rtol=0)
