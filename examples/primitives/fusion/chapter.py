# ---
# jupyter:
#   cudatut:
#     title: {en: "Element-wise kernels and fusion", zh: "逐元素 kernel 与融合"}
#     requires: sm_75
#     timeout_s: 180
#     sizes:
#       n: [1_111_111, 11_111]
#       points: [1_048_576, 4_096]
#       large: [268_435_456, 1_048_576]
#       shape: [[65_536, 4_096], [64, 4_096]]
#       rounds: [15, 1]
# ---

# %% [markdown]
# GELU of a million numbers, one element per thread, and with 16 bytes per load.

# %% program
import math

import numpy as np

import cudatut as ct

FILE = "primitives/fusion/gelu.cu"
n = 1_111_111
x = 3 * ct.rng(0).standard_normal(n, dtype="float32")
a, out = ct.to_device(x), ct.empty(n, "float32")


def exact(x):
    """In fp64: x times the probability that a normal number is below x."""
    erfc = np.vectorize(math.erfc, otypes=["float64"])
    return 0.5 * x * erfc(-x / math.sqrt(2))


# Type, elements per access, accesses per thread, threads, formula: 0 is erf.
simple = ct.Kernel(FILE, "gelu_one<float,0>")
vectors = ct.Kernel(FILE, "gelu<float,4,2,256,0>")
wanted = exact(x.astype("float64"))
simple(a, out, n, grid=ct.cdiv(n, 256), block=256)
ct.check(out, wanted, name="one per thread")
ct.poison(out)
vectors(a, out, n, grid=ct.cdiv(n, 4 * 2 * 256), block=256)
ct.check(out, wanted, name="vectors")

# %% [markdown]
# How far each formula is from GELU, in fp32, between -6 and 6. Beside it: how
# far a number is from itself after it was rounded to bf16.

# %% errors
from cudatut.book.numbers.bf16 import to_bf16, to_float
from cudatut.book.primitives.fusion import launch

ct.compile_ahead(launch.instances())  # side by side
points = 1_048_576
line = np.linspace(-6, 6, points, dtype="float32")
true = exact(line.astype("float64"))
spots, there = ct.to_device(line), ct.empty(points, "float32")
rows = {}
for op in launch.OPS:
    launch.gelu(spots, there, op)()
    rows[op] = there.get()
rows["rounded to bf16"] = to_float(to_bf16(true.astype("float32")))
errors = {name: np.abs(values - true) for name, values in rows.items()}
ct.table(
    "largest difference to GELU",
    {
        name: {
            "difference, 1e-6": 1e6 * error.max(),
            "at x": float(line[error.argmax()]),
        }
        for name, error in errors.items()
    },
    corner="formula",
)

# %% [markdown]
# Any length, any address, both types, and in place.

# %% check
ALLOWED = {"erf": 1e-6, "erf, fast": 2e-6, "tanh": 5e-4, "tanh, fast": 5e-4}
worst = dict.fromkeys(ALLOWED, 0.0)
for m in (*ct.RAGGED, 8, 4_097):
    host = 3 * ct.rng(m).standard_normal(m, dtype="float32")
    for given in (host, to_bf16(host)):
        rounds_to = 0 if given is host else 2**-8  # of a result in bf16
        seen = host if given is host else to_float(given)
        true = exact(seen.astype("float64"))
        for begin in (0, 1, 2):
            for op, atol in ALLOWED.items():
                if begin and op != "erf":
                    continue  # the same loads and stores
                part = ct.empty(m + begin, given.dtype)[begin:]
                part.set(given)
                launch.gelu(part, part, op)()
                got = part.get() if given is host else to_float(part.get())
                limit = atol + rounds_to * np.abs(true)
                share = float((np.abs(got - true) / limit).max())
                worst[op] = max(worst[op], share)
assert max(worst.values()) <= 1, worst
ct.facts("largest error, of what is allowed", worst)

# %% [markdown]
# One gibibyte in, one out. All take turns; all bytes count, read and written.

# %% bench
import pycuda.driver as cuda
from cudatut.book.primitives.fusion import fuse
from cudatut.book.rivals.torch_rival import rival

large = 268_435_456
rounds = 15
sample = 2 * ct.rng(1).standard_normal(1_048_576, dtype="float32")


def filled(shape, bf16, seed=0):
    """An array on the GPU that repeats the sample, from another place each."""
    count = math.prod(shape)
    values = np.roll(sample, 1_000 * seed)
    values = np.resize(to_bf16(values) if bf16 else values, count)
    return ct.to_device(values.reshape(shape))


def by_driver(x, out):
    """The driver's copy, to be compared with; none under a tool."""
    if ct.tool.running():
        return None
    there, here, nbytes = out.gpudata, x.gpudata, x.nbytes
    return ct.vendor.Vendor(lambda: cuda.memcpy_dtod_async(there, here, nbytes))


def copies(x, out):
    return {
        "copy, driver": by_driver(x, out),
        "copy, PyTorch": rival(lambda torch, s, t: lambda: t.copy_(s), x, out),
    }


def gelu_of_torch(how):
    def prepare(torch, s, t):
        gelu = torch.ops.aten.gelu
        return lambda: gelu.out(s, approximate=how, out=t)

    return prepare


def contest(bf16):
    x = filled((large,), bf16)
    out = ct.empty(large, x.dtype)
    runs = {"one per thread": launch.gelu(x, out, one=True)}
    runs |= {op: launch.gelu(x, out, op) for op in launch.OPS}
    for fast in (False, True):
        made = fuse.Fused(lambda x: fuse.gelu(x), fast=fast)
        name = "the fuser, fast" if fast else "the fuser"
        runs[name] = made.launcher(x, out=out)
    runs["PyTorch"] = rival(gelu_of_torch("none"), x, out)
    runs["PyTorch, tanh"] = rival(gelu_of_torch("tanh"), x, out)
    return ct.bench(
        {**runs, **copies(x, out)},
        bytes=2 * x.nbytes,
        name="GELU, bf16" if bf16 else "GELU, fp32",
        rounds=rounds,
    )


alone = {"fp32": contest(bf16=False)}

# %% bench-bf16
alone["bf16"] = contest(bf16=True)

# %% [markdown]
# gelu(x + bias) + residual of a matrix: as three kernels, as one, and by
# PyTorch, one operation after the other.

# %% bench-fused
shape = (65_536, 4_096)


def eager(torch, x, bias, residual, out):
    gelu = torch.nn.functional.gelu
    return lambda: gelu(x + bias) + residual


def contest_fused(bf16):
    x, residual = (filled(shape, bf16, seed) for seed in (1, 2))
    bias, out = filled(shape[1:], bf16, 3), ct.empty(shape, x.dtype)
    arrays = x, bias, residual
    runs = {"three kernels": launch.three_kernels(*arrays, out)}
    for op in ("erf", "erf, fast"):
        runs[f"one kernel, {op}"] = launch.bias_gelu_residual(
            *arrays, out, op, each=1
        )
    made = fuse.Fused(
        lambda x, bias, residual: fuse.gelu(x + bias) + residual, fast=bf16
    )
    runs["the fuser"] = made.launcher(*arrays, out=out)
    runs["PyTorch"] = rival(eager, *arrays, out)
    runs |= copies(x, out)
    return ct.bench(
        runs,
        bytes=dict.fromkeys(runs, 3 * x.nbytes)
        | dict.fromkeys(("copy, driver", "copy, PyTorch"), 2 * x.nbytes),
        name="gelu(x + bias) + residual, " + ("bf16" if bf16 else "fp32"),
        rounds=rounds,
    )


fused = {"fp32": contest_fused(bf16=False)}

# %% bench-fused-bf16
fused["bf16"] = contest_fused(bf16=True)

# %% [markdown]
# The goal: 0.97 times the rate of the better of the two copies, for the fastest
# of our kernels.

# %% goals
COPIES = "copy, driver", "copy, PyTorch"
if not ct.tool.running():
    wanted = {}
    for what, kind in (("GELU", alone), ("one kernel", fused)):
        for dtype, one in kind.items():
            # None where PyTorch is missing.
            names = [row.name for row in one.rows]
            copy = max(
                (name for name in COPIES if name in names),
                key=lambda name: one[name].value,
            )
            ours = [name for name in names if name in launch.OPS]
            ours += [name for name in names if name.startswith("one kernel")]
            best = max(ours, key=lambda name: one[name].value)
            wanted[f"{what}, {dtype}"] = one.goal(best, copy, 0.97)
    ct.goals("rate beside a copy", wanted)

# %% [markdown]
# The prediction counts passes over the memory: three kernels read and write
# seven times as many bytes as x has, one kernel three times. Both take the
# exact erf.

# %% predicted
if not ct.tool.running():
    ct.table(
        "three kernels / one kernel",
        {
            dtype: {
                "predicted": 7 / 3,
                "measured": one["three kernels"].median_us
                / one["one kernel, erf"].median_us,
                "PyTorch / one kernel": one["PyTorch"].median_us
                / one["one kernel, erf"].median_us
                if "PyTorch" in [row.name for row in one.rows]
                else None,
            }
            for dtype, one in fused.items()
        },
        corner="type",
    )

# %% [markdown]
# The fuser writes a kernel from an expression. What occurs twice is computed
# once.

# %% fuser
arrays = 3 * ct.rng(2).standard_normal((3, 33, 77), dtype="float32")
x2, gate, residual = arrays
bias = arrays[0, 0] + 1


def layer(x, bias, gate, residual):
    y = x + bias
    return fuse.gelu(y) * fuse.silu(gate) + residual


made = fuse.Fused(layer)
target = ct.empty((33, 77), "float32")
inputs = (x2, bias, gate, residual)
made(*map(ct.to_device, inputs), out=target)
ct.check(target, layer(*(one.astype("float64") for one in inputs)))
body = made.text.split("{")[-1].split("}")[0]
print("\n".join(line.strip() for line in body.strip().splitlines()))
