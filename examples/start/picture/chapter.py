# ---
# jupyter:
#   cudatut:
#     title: {en: "A picture, one thread for each pixel", zh: "一幅图，每个像素一个线程"}
#     requires: sm_75
#     timeout_s: 120
#     sizes: {width: [1200, 48], steps: [200, 20]}
# ---
# %% [markdown]
# The Mandelbrot set, by NumPy and by a GPU thread for each pixel. The times count everything from a few numbers to a
# picture in the memory of the host.

# %% program
import struct
import time
import numpy as np
import pycuda.autoprimaryctx
import pycuda.driver as cuda
from pycuda.compiler import SourceModule

source = """
__global__ void mandelbrot(unsigned char *image, int width, int height,
                           int steps, float center_x, float center_y,
                           float span) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < width * height) {
    int x = i % width;
    int y = i / width;
    float a = center_x + span * (x - width / 2) / width;
    float b = center_y + span * (y - height / 2) / width;
    float u = 0, v = 0;
    int step = 0;
    while (step < steps && u * u + v * v <= 4) {
      float next = u * u - v * v + a;
      v = 2 * u * v + b;
      u = next;
      step = step + 1;
    }
    image[i] = step < steps ? step % 255 + 1 : 0;
  }
}
"""
mandelbrot = SourceModule(source).get_function("mandelbrot")
width = 1200
height = width * 2 // 3
steps = 200
center_x, center_y, span = -0.65, 0.0, 3.3
n = width * height
sizes = np.int32(width), np.int32(height), np.int32(steps)
place = np.float32(center_x), np.float32(center_y), np.float32(span)
blocks = (n + 255) // 256

for name in ("first launch", "GPU"):
    start = time.perf_counter()
    image = np.empty((height, width), np.uint8)
    out = cuda.Out(image)
    mandelbrot(out, *sizes, *place, grid=(blocks, 1), block=(256, 1, 1))
    gpu_s = time.perf_counter() - start
    print(f"{name:12} {1000 * gpu_s:8.2f} ms")

start = time.perf_counter()
i = np.arange(n)
x, y = i % width, i // width
a = np.float32(center_x + span * (x - width // 2) / width)
b = np.float32(center_y + span * (y - height // 2) / width)
u, v, step = np.zeros_like(a), np.zeros_like(a), np.zeros(n, int)
with np.errstate(all="ignore"):  # u and v may become infinite
    for _ in range(steps):
        step += u * u + v * v <= 4
        u, v = u * u - v * v + a, 2 * u * v + b
by_numpy = np.where(step < steps, step % 255 + 1, 0).reshape(height, width)
cpu_s = time.perf_counter() - start
print(f"NumPy        {1000 * cpu_s:8.2f} ms")
print(f"NumPy takes {cpu_s / gpu_s:.1f} times as long as the GPU.")
print(f"pixels that agree: {np.mean(image == by_numpy):.2%}")

# A BMP file: each byte of the image is the number of a color in the palette.
k = np.arange(256)
waves = [127.5 - 127.5 * np.cos(0.12 * k + more) for more in (1, 0.5, 0)]
palette = np.array([*waves, 0 * k], np.uint8).T.copy()  # blue, green, red, 0
palette[0] = 0  # black
head = b"BM", 1078 + n, 0, 1078, 40, width, -height, 1, 8, 0, 0, 0, 0, 0, 0
with open("mandelbrot.bmp", "wb") as file:
    file.write(struct.pack("<2sIIIIiiHHIIIIII", *head))
    file.write(palette.tobytes() + image.tobytes())

# %% [markdown]
# The picture that the program writes, each second pixel in both directions.

# %% picture
import cudatut as ct


def small(image, every=2):
    """What a page shows of a picture: each second pixel in both directions, red first."""
    return palette[image[::every, ::every]][:, :, 2::-1].copy()


ct.picture(
    "mandelbrot.bmp",
    small(image),
    alt={
        "en": "a black shape, a heart on its side with discs at its edge, with bright seams on blue bands",
        "zh": "黑色图形，像一颗横放的心，边缘连着大大小小的圆，外面镶着亮边，背景是一圈圈的蓝色",
    },
)

# %% [markdown]
# The same kernel, but it takes rows to be as long as columns are. No pixel is missing, but most are wrong.


# %% wrong-length
def draw(kernel, place=place, steps=steps):
    """The whole way to a picture on the host."""
    image = np.empty((height, width), np.uint8)
    sizes = np.int32(width), np.int32(height), np.int32(steps)
    out = cuda.Out(image)
    kernel(out, *sizes, *place, grid=(blocks, 1), block=(256, 1, 1))
    return image


def instead(lines):
    """The kernel with two lines in the place of those that compute x and y."""
    right = "int x = i % width;\n    int y = i / width;"
    assert right in source
    return SourceModule(source.replace(right, lines)).get_function("mandelbrot")


torn = draw(instead("int x = i % height; int y = i / height;"))
print(f"pixels that agree: {np.mean(torn == by_numpy):.2%}")

# %% torn
ct.picture(
    "torn.bmp",
    small(torn, 3),
    alt={
        "en": "three striped copies of the left part of the shape, side by side and squeezed into the upper half",
        "zh": "图形的左半部分并排重复了三遍，压扁在上半部，布满横条纹",
    },
)

# %% [markdown]
# Answers to 'Try it': a small part of the picture with more steps, more steps for all of it, and the two lines swapped.

# %% try-1
near = np.float32(0.275), np.float32(0.006), np.float32(0.01)
part = draw(mandelbrot, near, 500)

# %% part
ct.picture(
    "part.bmp",
    small(part, 3),
    alt={
        "en": "a chain of brown spirals between black below and light blue above, with smaller spirals along each",
        "zh": "下面是黑色，上面是浅蓝，中间排着一串棕色的螺旋，每个螺旋的边缘又有更小的螺旋",
    },
)


# %% try-2
def gpu_ms(steps=steps, rounds=11):
    """The median time of the whole way to a picture on the host."""
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        draw(mandelbrot, steps=steps)
        times.append(1000 * (time.perf_counter() - start))
    return sorted(times)[rounds // 2]


rows = {}
for more in (200, 1000, 5000):
    black = np.mean(draw(mandelbrot, steps=more) == 0)
    rows[f"{more}"] = {"GPU": gpu_ms(more), "black": 100 * float(black)}
ct.table("more steps", rows, corner="steps", units={"GPU": "ms", "black": "%"})

# %% try-3
turned = draw(instead("int x = i / width; int y = i % width;"))

# %% turned
ct.picture(
    "standing",
    small(turned, 4),
    alt={
        "en": "the same black shape, but standing upright with its point on top, and cut off below",
        "zh": "同一个黑色图形，立了起来，尖端朝上，下面被切掉一块",
    },
)

# %% [markdown]
# NumPy uses one core, and walks through the memory once for each operation. The same loop in C++, on all cores. The
# program counts neither the compiler nor the first launch; here is what they take.

# %% in-c
import os
import subprocess
import tempfile
from ctypes import CDLL, c_float, c_int, c_void_p
from pathlib import Path

LOOP = r"""
extern "C" void mandelbrot(unsigned char *image, int width, int height,
                           float center_x, float center_y, float span,
                           int steps) {
#pragma omp parallel for schedule(dynamic, 4)
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x) {
      float a = center_x + span * (x - width / 2) / width;
      float b = center_y + span * (y - height / 2) / width;
      float u = 0, v = 0;
      int step = 0;
      while (step < steps && u * u + v * v <= 4) {
        float next = u * u - v * v + a;
        v = 2 * u * v + b;
        u = next;
        ++step;
      }
      image[y * width + x] = step < steps ? step % 255 + 1 : 0;
    }
}
"""
with tempfile.TemporaryDirectory() as folder:
    Path(folder, "loop.cpp").write_text(LOOP)
    command = "g++ -O3 -march=native -fopenmp -shared -fPIC -o c.so loop.cpp"
    subprocess.run(command.split(), cwd=folder, check=True)
    in_c = CDLL(f"{folder}/c.so").mandelbrot
in_c.argtypes = c_void_p, c_int, c_int, c_float, c_float, c_float, c_int
by_c = np.empty_like(image)


def c_ms(rounds=11):
    """The median time of the loop in C++."""
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        in_c(by_c.ctypes.data, width, height, center_x, center_y, span, steps)
        times.append(1000 * (time.perf_counter() - start))
    return sorted(times)[rounds // 2]


c_ms(1)  # starts the threads
ct.table(
    "whole programs",
    {
        "NumPy": {"time": 1000 * cpu_s},
        "C++ on all cores": {"time": c_ms()},
        "GPU": {"time": gpu_ms()},
    },
    units={"time": "ms"},
)
start = time.perf_counter()
fresh = SourceModule(source, cache_dir=False).get_function("mandelbrot")
compiled = time.perf_counter()
draw(fresh)
ct.facts(
    "not counted",
    {
        "cores": len(os.sched_getaffinity(0)),
        "agree with NumPy": float(np.mean(by_numpy == image)),
        "agree with C++": float(np.mean(by_c == image)),
    },
)
ct.facts(
    "before the race",
    {
        "compiling": (1000 * (compiled - start), "ms"),
        "first launch": (1000 * (time.perf_counter() - compiled), "ms"),
    },
)
