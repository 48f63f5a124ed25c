# ---
# jupyter:
#   cudatut:
#     title: {en: "A picture: solutions", zh: "一幅图：参考答案"}
#     requires: sm_75
#     timeout_s: 60
#     sizes: {largest: [[1200, 800], [48, 32]]}
# ---
# %% [markdown]
# Solutions to the exercises of the chapter with the picture.

# %% given-1
import numpy as np
import pycuda.autoprimaryctx
import pycuda.driver as cuda
from pycuda.compiler import SourceModule

# %% solution-1
module = SourceModule("""
__global__ void chessboard(unsigned char *image, int width, int height) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < width * height) {
    int x = i % width;
    int y = i / width;
    image[i] = (x / 8 + y / 8) % 2 == 0 ? 220 : 60;
  }
}
""")
chessboard = module.get_function("chessboard")

# %% check-1
import struct
import cudatut as ct

for width, height in ((1, 1), (8, 9), (33, 7), (100, 41), (512, 512)):
    n = width * height
    blocks = (n + 255) // 256
    sizes = np.int32(width), np.int32(height)
    out = ct.empty((height, width), "uint8")
    chessboard(out, *sizes, grid=(blocks, 1), block=(256, 1, 1))
    x, y = np.arange(width), np.arange(height)[:, None]
    expected = np.where((x // 8 + y // 8) % 2 == 0, 220, 60).astype(np.uint8)
    ct.check(out, expected, name=f"{width} x {height}")
greys = np.arange(256, dtype=np.uint32) * 0x010101
head = b"BM", 1078 + n, 0, 1078, 40, width, -height, 1, 8, 0, 0, 0, 0, 0, 0
with open("chessboard.bmp", "wb") as file:
    file.write(struct.pack("<2sIIIIiiHHIIIIII", *head))
    file.write(greys.tobytes() + out.get().tobytes())

# %% given-2
import numpy as np
import pycuda.autoprimaryctx
import pycuda.driver as cuda
from pycuda.compiler import SourceModule

steps, a, b = 200, -0.8, 0.156

# %% solution-2
module = SourceModule("""
__global__ void julia(unsigned char *image, int width, int height, int steps,
                      float a, float b) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < width * height) {
    int x = i % width;
    int y = i / width;
    float u = 3.2f * (x - width / 2) / width;
    float v = 3.2f * (y - height / 2) / width;
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
""")
julia = module.get_function("julia")

# %% check-2
import struct
import time
import cudatut as ct

largest = (1200, 800)
for width, height in ((1, 1), (33, 7), (100, 41), largest):
    n = width * height
    sizes = np.int32(width), np.int32(height), np.int32(steps)
    c = np.float32(a), np.float32(b)
    out = ct.empty((height, width), "uint8")
    start = time.perf_counter()
    julia(out, *sizes, *c, grid=((n + 255) // 256, 1), block=(256, 1, 1))
    image = out.get()
    gpu_s = time.perf_counter() - start
    start = time.perf_counter()
    i = np.arange(n)
    u = np.float32(3.2 * (i % width - width // 2) / width)
    v = np.float32(3.2 * (i // width - height // 2) / width)
    step = np.zeros(n, int)
    with np.errstate(all="ignore"):
        for _ in range(steps):
            step += u * u + v * v <= 4
            u, v = u * u - v * v + c[0], 2 * u * v + c[1]
    expected = np.where(step < steps, step % 255 + 1, 0)
    cpu_s = time.perf_counter() - start
    ct.check(image <= steps, np.ones(image.shape, bool), name="written")
    # At an edge, the last bit of a number decides: a few pixels may differ.
    differ = np.array([np.mean(image.reshape(n) != expected)])
    name = f"differ, {width} x {height}"
    ct.check(differ, np.zeros(1), atol=0.05, name=name)
print(f"NumPy  {1000 * cpu_s:8.2f} ms")
print(f"GPU    {1000 * gpu_s:8.2f} ms")
k = np.arange(256)
waves = [127.5 - 127.5 * np.cos(0.12 * k + more) for more in (1, 0.5, 0)]
palette = np.array([*waves, 0 * k], np.uint8).T.copy()
palette[0] = 0
head = b"BM", 1078 + n, 0, 1078, 40, width, -height, 1, 8, 0, 0, 0, 0, 0, 0
with open("julia.bmp", "wb") as file:
    file.write(struct.pack("<2sIIIIiiHHIIIIII", *head))
    file.write(palette.tobytes() + image.tobytes())

# %% given-3
import numpy as np
import pycuda.autoprimaryctx
import pycuda.driver as cuda
from pycuda.compiler import SourceModule

# %% solution-3
module = SourceModule("""
__global__ void turn(const unsigned char *in, unsigned char *out, int width,
                     int height) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < width * height) {
    int x = i % width;
    int y = i / width;
    out[x * height + height - 1 - y] = in[i];
  }
}
""")
turn = module.get_function("turn")

# %% check-3
import cudatut as ct

for width, height in ((1, 1), (5, 3), (33, 7), (100, 41), (41, 100)):
    blocks = (width * height + 255) // 256
    sizes = np.int32(width), np.int32(height)
    image = ct.rng(width).integers(0, 255, (height, width), np.uint8)
    d_image, out = ct.to_device(image), ct.empty((width, height), "uint8")
    turn(d_image, out, *sizes, grid=(blocks, 1), block=(256, 1, 1))
    ct.check(out, np.rot90(image, -1), name=f"turned, {width} x {height}")
