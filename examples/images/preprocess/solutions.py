# ---
# jupyter:
#   cudatut:
#     title:
#       en: "One kernel for a network's input: solutions"
#       zh: "一个 kernel 备好网络输入：参考答案"
#     requires: sm_75
#     timeout_s: 60
# ---

# %% [markdown]
# A network's input as a picture again; boxes on the photograph they are of;
# and the middle of a photograph, by the same kernel with another table.

# %% given-1
import numpy as np
import cudatut as ct

# %% solution-1
back = ct.Kernel(
    """
// A bf16 has the first 16 bits of the float of the same value.
__global__ void back(const unsigned short* planes, const float* mean,
                     const float* std, unsigned char* image, int n) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  if (i >= n) return;
  for (int c = 0; c < 3; ++c) {
    const unsigned bits = planes[(long long)c * n + i];
    const float v = __uint_as_float(bits << 16);
    const float level = rintf(255 * (v * std[c] + mean[c]));
    image[3LL * i + c] = (unsigned char)fminf(fmaxf(level, 0), 255);
  }
}
""",
    "back",
)

# %% check-1
import cudatut as ct
from cudatut.book.images.preprocess.reference import MEAN, STD

mean, std = np.array(MEAN)[:, None], np.array(STD)[:, None]
on_gpu = [ct.to_device(np.array(x, "float32")) for x in (MEAN, STD)]
for n in (256, *ct.RAGGED):
    levels = ct.rng(n).integers(0, 256, (3, n))
    if n == 256:
        levels[:] = np.arange(256)  # each one, in each channel
    v = ((levels / 255 - mean) / std).astype("float32").view("uint32")
    words = ((v + 0x7FFF + (v >> 16 & 1)) >> 16).astype("uint16")  # bf16
    image = ct.empty((n, 3), "uint8")
    ct.poison(image)
    back(
        ct.to_device(words), *on_gpu, image, n,
        grid=ct.cdiv(n, 256), block=256,
    )  # fmt: skip
    ct.check(image, levels.T, name=f"{n} pixels", rtol=0, atol=0)

# %% given-2
import numpy as np
import cudatut as ct

# %% solution-2
on_photograph = ct.Kernel(
    """
struct Letter {  // in pixels: of the input, and for one of it
  float top, left, down, across;
  float height, width;  // of the photograph
};

__device__ float inside(float at, float most) {
  return fminf(fmaxf(at, 0.0f), most);
}

__global__ void on_photograph(const float4* boxes, const int* of,
                              const Letter* letters, float4* out, int n) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  if (i >= n) return;
  const float4 box = boxes[i];
  const Letter l = letters[of[i]];
  // Edges of pixels, not centers: no half is added.
  out[i] = {inside((box.x - l.left) * l.across, l.width),
            inside((box.y - l.top) * l.down, l.height),
            inside((box.z - l.left) * l.across, l.width),
            inside((box.w - l.top) * l.down, l.height)};
}
""",
    "on_photograph",
)

# %% check-2
import cudatut as ct
from cudatut.book.images.preprocess.batches import SIDE, SIZES
from cudatut.book.images.preprocess.reference import placed

letters = []
for h, w in SIZES:
    new_h, new_w, top, left = placed(h, w, SIDE, SIDE)
    letters.append((top, left, h / new_h, w / new_w, h, w))
letters = np.array(letters, "float32")
for n in ct.RAGGED:
    chance = ct.rng(n)
    of = chance.integers(0, len(SIZES), n).astype("int32")
    corners = chance.uniform(0, SIDE, (n, 2, 2)).astype("float32")
    corners.sort(axis=1)
    out = ct.empty((n, 4), "float32")
    ct.poison(out)
    on_photograph(
        ct.to_device(corners.reshape(n, 4)), ct.to_device(of),
        ct.to_device(letters), out, n, grid=ct.cdiv(n, 256), block=256,
    )  # fmt: skip
    top, left, down, across, h, w = letters[of].astype("float64").T
    x, y = corners[:, :, 0].T.astype("float64"), corners[:, :, 1].T
    expected = np.stack(
        [
            ((x[0] - left) * across).clip(0, w),
            ((y[0] - top) * down).clip(0, h),
            ((x[1] - left) * across).clip(0, w),
            ((y[1] - top) * down).clip(0, h),
        ],
        axis=1,
    )
    ct.check(out, expected, name=f"{n} boxes", rtol=1e-5, atol=1e-2)

# %% given-3
import numpy as np
import cudatut as ct

# %% solution-3


def middle(height, width, side):
    scale = side / min(height, width)
    new_height, new_width = round(height * scale), round(width * scale)
    # What lies before the output begins at a negative place.
    return (
        new_height,
        new_width,
        (side - new_height) // 2,
        (side - new_width) // 2,
    )


# %% check-3
import cudatut as ct
from cudatut.book.images.preprocess.batches import bf16, noise
from cudatut.book.images.preprocess.preprocess import IMAGE, scale_of
from cudatut.book.images.preprocess.reference import MEAN, STD, resized

kernel = ct.Kernel("images/preprocess/pixel.cu", "letterbox_pixel")
for h, w in ((1, 1), (3, 8), (64, 64), (96, 64), (100, 257)):
    for side in (1, 16, 65):
        image = noise([(h, w)], seed=h + w)[0]
        new_h, new_w, top, left = middle(h, w, side)
        table = np.zeros(1, IMAGE)
        table[0] = (0, h, w, top, left, new_h, new_w, h / new_h, w / new_w)
        out = ct.empty((3, side, side), "uint16")
        kernel(
            ct.to_device(image), ct.to_device(table.view("uint8")),
            scale_of("pixel", 114, MEAN, STD), side, side, out,
            grid=(ct.cdiv(side, 32), ct.cdiv(side, 8)), block=(32, 8),
        )  # fmt: skip
        scale = side / min(h, w)
        high, wide = round(h * scale), round(w * scale)
        y, x = (high - side + 1) // 2, (wide - side + 1) // 2
        part = resized(image, high, wide)[y : y + side, x : x + side, ::-1]
        expected = ((part / 255 - MEAN) / STD).transpose(2, 0, 1)
        ct.check(
            bf16(out.get()), expected, rtol=2**-8, atol=1e-3,
            name=f"{h} x {w}, side {side}",
        )  # fmt: skip
