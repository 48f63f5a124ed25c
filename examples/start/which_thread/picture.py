# ---
# jupyter:
#   cudatut:
#     title: {en: "A picture, one thread for each pixel", zh: "一幅图：每个像素一个线程"}
#     requires: sm_75
#     timeout_s: 120
#     extra: images
#     sizes: {width: [1200, 48], steps: [200, 20]}
# ---
# %% [markdown]
# The Mandelbrot set, first by NumPy, then by a GPU thread for each pixel. The times count everything from numbers to a
# picture in the memory of the computer.

# %% program
import struct
import time
import numpy as np
import pycuda.autoprimaryctx
import pycuda.driver as cuda
from pycuda.compiler import SourceModule

module = SourceModule("""
__global__ void mandelbrot(unsigned char *image, int width, int height,
                           int steps) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= width * height) return;
  int x = i % width;
  int y = i / width;
  float a = 3.3f * x / width - 2.3f;
  float b = 2.2f * y / height - 1.1f;
  float re = 0, im = 0;
  int step = 0;
  while (step < steps && re * re + im * im <= 4) {
    float next = re * re - im * im + a;
    im = 2 * re * im + b;
    re = next;
    step = step + 1;
  }
  image[i] = step;
}
""")
mandelbrot = module.get_function("mandelbrot")

width = 1200
steps = 200
height = width * 2 // 3
n = width * height


def on_gpu():
    image = np.empty((height, width), np.uint8)
    sizes = np.int32(width), np.int32(height), np.int32(steps)
    blocks = (n + 255) // 256
    out = cuda.Out(image)
    mandelbrot(out, *sizes, grid=(blocks, 1), block=(256, 1, 1))
    return image


def on_cpu():
    i = np.arange(n)
    x, y = i % width, i // width
    a = (3.3 * x / width - 2.3).astype(np.float32)
    b = (2.2 * y / height - 1.1).astype(np.float32)
    re, im, step = np.zeros_like(a), np.zeros_like(a), np.zeros(n, np.uint8)
    for _ in range(steps):
        step += re * re + im * im <= 4
        re, im = re * re - im * im + a, 2 * re * im + b
    return step.reshape(height, width)


on_gpu()  # the first launch takes longer
start = time.perf_counter()
image = on_gpu()
gpu_s = time.perf_counter() - start
start = time.perf_counter()
with np.errstate(all="ignore"):
    by_numpy = on_cpu()
cpu_s = time.perf_counter() - start

print(f"NumPy  {cpu_s * 1000:8.1f} ms")
print(f"GPU    {gpu_s * 1000:8.1f} ms")
print(f"pixels that agree: {np.mean(image == by_numpy):.2%}")

colors = np.where(image < steps, 55 + image, 0).astype(np.uint8)
head = b"BM", 54 + 3 * n, 0, 54, 40, width, -height, 1, 24, 0, 0, 0, 0, 0, 0
with open("mandelbrot.bmp", "wb") as file:
    file.write(struct.pack("<2sIIIIiiHHIIIIII", *head))
    file.write(np.repeat(colors, 3).tobytes())

# %% [markdown]
# The picture that the program writes, each second pixel in both directions.

# %% picture
import cudatut as ct

ct.picture(
    "Mandelbrot set",
    np.ascontiguousarray(colors[::2, ::2]),
    alt={
        "en": "a black shape like a heart with a disc at its left, edged with bright buds and threads, on dark grey",
        "zh": "深灰底上的黑色图形：右边像一颗心，左边连着一个圆，边缘有许多明亮的小芽和细丝",
    },
)

# %% [markdown]
# NumPy uses one core, and walks through the memory once for each operation. The same loop in C++, on all cores.

# %% in-c
import os
import subprocess
import tempfile
from ctypes import CDLL, c_int, c_void_p
from pathlib import Path

SOURCE = r"""
extern "C" void mandelbrot(unsigned char *image, int width, int height,
                           int steps) {
#pragma omp parallel for schedule(dynamic, 4)
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x) {
      float a = 3.3f * x / width - 2.3f, b = 2.2f * y / height - 1.1f;
      float re = 0, im = 0;
      int step = 0;
      while (step < steps && re * re + im * im <= 4) {
        float next = re * re - im * im + a;
        im = 2 * re * im + b;
        re = next;
        ++step;
      }
      image[y * width + x] = step;
    }
}
"""
with tempfile.TemporaryDirectory() as folder:
    Path(folder, "c.cpp").write_text(SOURCE)
    command = "g++ -O3 -march=native -fopenmp -shared -fPIC -o c.so c.cpp"
    subprocess.run(command.split(), cwd=folder, check=True)
    in_c = CDLL(f"{folder}/c.so").mandelbrot
in_c.argtypes = c_void_p, c_int, c_int, c_int
by_c = np.empty_like(image)
arguments = by_c.ctypes.data, width, height, steps


def seconds(run, rounds=7):
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return sorted(times)[rounds // 2]


in_c(*arguments)  # starts the threads
ct.table(
    "race",
    {
        "NumPy": {"time": cpu_s * 1e3},
        "C++ on all cores": {"time": seconds(lambda: in_c(*arguments)) * 1e3},
        "GPU": {"time": seconds(on_gpu) * 1e3},
    },
    units={"time": "ms"},
)
ct.facts("rivals", {"cores": len(os.sched_getaffinity(0))})
