# ---
# jupyter:
#   cudatut:
#     title: {en: "First optimization: solutions", zh: "第一次优化：参考答案"}
#     requires: sm_75
#     timeout_s: 120
# ---

# %% [markdown]
# Four elements per load, and how long an array must be before bandwidth is what counts.

# %% setup
import cudatut as ct

n, largest = ct.size((10_000_000, 100_000_000), (100_003, 100_003))
rng = ct.rng(0)
x_host = rng.random(largest, dtype="float32")
y_host = rng.random(largest, dtype="float32")
x, y = ct.to_device(x_host), ct.to_device(y_host)
many_blocks = ct.Kernel("start/first_optimization.cu", "add_many_blocks")

# %% solution-1
add4 = ct.Kernel(
    """
extern "C" __global__ void add4(const float* __restrict__ x, const float* __restrict__ y,
                                float* __restrict__ out, int n) {
  int i = 4 * (blockIdx.x * blockDim.x + threadIdx.x);
  if (i + 3 < n) {  // four whole elements: one 16-byte load per array
    float4 a = *reinterpret_cast<const float4*>(x + i);
    float4 b = *reinterpret_cast<const float4*>(y + i);
    *reinterpret_cast<float4*>(out + i) =
        make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
  } else {
    for (; i < n; ++i) out[i] = x[i] + y[i];  // the last one to three, or none
  }
}
""",
    "add4",
)


def four_each(x, y, out, n):
    add4(x, y, out, n, grid=ct.cdiv(ct.cdiv(n, 4), 256), block=256)


for m in sorted({n, largest, *ct.RAGGED}):
    out = ct.empty(m, "float32")
    four_each(x[:m], y[:m], out, m)
    ct.check(out, x_host[:m] + y_host[:m], name=f"add4, n={m}")

# %% bench-1
out = ct.empty(largest, "float32")


def compare(m):
    ct.bench(
        {
            "many-blocks": lambda: many_blocks(x, y, out, m, grid=ct.cdiv(m, 256), block=256),
            "add4": lambda: four_each(x, y, out, m),
            "CuPy": ct.vendor.add(x[:m], y[:m], out[:m]),
        },
        bytes=3 * 4 * m,
        name=f"four elements per thread, n = {m:_}",
    )


compare(n)
compare(largest)


# %% solution-2
def add_first(m):
    return lambda: many_blocks(x, y, out, m, grid=ct.cdiv(m, 256), block=256)


sizes = [m for m in (1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000) if m <= largest]
for m in sizes:
    ct.poison(out)
    add_first(m)()
    ct.check(out[:m], x_host[:m] + y_host[:m], name=f"n={m}")
ct.bench(
    {f"n={m}": add_first(m) for m in sizes},
    bytes={f"n={m}": 3 * 4 * m for m in sizes},
    name="length of the array",
)
