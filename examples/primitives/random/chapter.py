# ---
# jupyter:
#   cudatut:
#     title: {en: "Random numbers", zh: "随机数"}
#     requires: sm_75
#     timeout_s: 180
#     sizes:
#       exponents: [[16, 20, 24, 28, 32], [12, 14]]
#       drawn: [16_777_216, 65_536]
#       samples: [3_000_001, 30_001]
#       seeds: [300, 10]
#       pairs: [4_194_304, 65_536]
# ---

# %% [markdown]
# How large is pi? Points in a square, and how many of them lie in the quarter
# of a circle.

# %% program
import math

import numpy as np

import cudatut as ct

kernel = ct.Kernel("primitives/random/monte_carlo.cu", "count_pi")
exponents = (16, 20, 24, 28, 32)
seed, stream = 2024, 0
for exponent in exponents:
    points = 2**exponent
    hits = ct.to_device(np.zeros(1, "uint64"))
    kernel(hits, points, seed, stream, grid=1_024, block=256)
    share = int(hits.get()[0]) / points
    error = 4 * math.sqrt(share * (1 - share) / points)
    off = abs(4 * share - math.pi) / error
    print(f"2^{exponent}: {4 * share:.7f} +- {error:.7f}, off {off:.2f} errors")

# %% [markdown]
# Philox of three counters and keys whose words its authors published.

# %% known
from cudatut.book.primitives.random import launch, philox

columns = zip(*philox.KNOWN)
counters, keys, words = (np.array(column, "uint32") for column in columns)
found = ct.empty((3, 4), "uint32")
given = ct.to_device(counters), ct.to_device(keys)
ct.Kernel(launch.FILL, "known")(*given, found, 3, grid=1, block=32)
ct.check(found, words, name="Philox4x32-10, known answers")
ct.check(philox.philox(counters, keys), words, name="the host's")

# %% [markdown]
# Every length, any address, any seed. Words and uniform numbers are the host's
# to the last bit. How far are normal numbers from the host's, of what the
# errors of their functions allow?

# %% check
worst = {"normal": 0.0, "normal, fast": 0.0}
for n in (*ct.RAGGED, 2, 3, 4, 5, 4_097):
    for seed, stream, begin in (
        (0, 0, 0),
        (2**40 + 5, 3, 1),
        (2**64 - 1, 7, 0),
    ):
        w = philox.words(n + n % 2, seed, stream)
        normal = philox.normal(w)[:n]
        allowed = {
            "normal": philox.ERROR * np.abs(normal) + 1e-30,
            "normal, fast": philox.bound(w)[:n],
        }
        for kind in launch.KINDS:
            dtype = "uint32" if kind == "words" else "float32"
            out = ct.empty(n + begin, dtype)[begin:]
            launch.fill(out, kind, seed, stream)()
            got = out.get()
            if kind in ("words", "uniform"):
                wanted = w if kind == "words" else philox.uniform(w)
                assert np.array_equal(got, wanted[:n]), (kind, n, seed, stream)
            else:
                share = np.abs(got - normal) / allowed[kind]
                worst[kind] = max(worst[kind], float(share.max()))
assert max(worst.values()) <= 1, worst
ct.facts("largest error, of what is allowed", worst)

# %% [markdown]
# Are they distributed as they should be? Moments of numbers, and how evenly
# uniform ones fill 256 bins.

# %% moments
drawn = 16_777_216
rows = {}
for kind in ("uniform", "normal", "normal, fast"):
    out = ct.empty(drawn, "float32")
    launch.fill(out, kind, seed=1)()
    x = out.get().astype("float64")
    if kind == "uniform":
        bins = np.histogram(x, 256, (0, 1))[0]
        chi2 = float(((bins - drawn / 256) ** 2).sum() / (drawn / 256))
        x = (x - 0.5) * math.sqrt(12)  # mean 0 and variance 1, as normal ones
    rows[kind] = {f"mean of x^{k}": float((x**k).mean()) for k in (1, 2, 3, 4)}
    rows[kind]["largest"] = float(np.abs(x).max())
ct.table("numbers with mean 0 and variance 1", rows, corner="distribution")
ct.facts(
    "256 bins",
    {"chi squared": chi2, "wanted": 255.0, "spread": math.sqrt(2 * 255)},
)

# %% [markdown]
# The price of an option is a mean, too. Is it the same for every grid? To the
# last bit?

# %% grids
samples = 3_000_001
option = launch.Option()
grids = (1, 7, 132, 1_000)
same = {}
for fast in (False, True):
    found = {
        launch.price(option, samples, 3, grid=grid, fast=fast) for grid in grids
    }
    same["price, fast" if fast else "price"] = len(found)
same["pi"] = len({launch.pi(samples, 3, grid=grid) for grid in grids})
first = ct.empty(4_096, "float32")
starts = set()
for blocks in (4, 8, 16):
    ct.Kernel(launch.FILL, "lcg")(first, 4_096, 1, grid=blocks, block=256)
    starts.add(first.get().tobytes())
same["a generator per thread"] = len(starts)
ct.facts("different results", {name: float(k) for name, k in same.items()})

# %% [markdown]
# Is the error bar right? The exact price is known. With other seeds, how often
# does it lie within 1.96 errors of the estimate? 95 of 100 times, if the bar is
# right.

# %% coverage
seeds = 300
exact = option.exact()
z = []
for seed in range(seeds):
    estimate = launch.price(option, 2**18, seed)
    z.append((estimate.mean - exact) / estimate.error)
z = np.array(z)
ct.facts(
    "estimates with different seeds",
    {
        "within 1.96 errors": (100 * float((np.abs(z) < 1.96).mean()), "%"),
        "mean, in errors": float(z.mean()),
        "standard deviation, in errors": float(z.std()),
    },
)

# %% [markdown]
# Four times as many samples, half the error.

# %% convergence
rows = {}
for exponent in exponents:
    price = launch.price(option, 2**exponent, 1)
    rows[f"2^{exponent}"] = {
        "price": price.mean,
        "error": price.error,
        "off": price.mean - exact,
        "off / error": (price.mean - exact) / price.error,
    }
ct.table("price of an option", rows, corner="samples")

# %% [markdown]
# A generator of its own for each thread, seeded by the thread's number: the
# first numbers of neighboring threads make points, and the points pi.

# %% neighbors
pairs = 4_194_304
out = ct.empty(2 * pairs, "float32")


def pi_of(x):
    x = x.reshape(-1, 2).astype("float64")
    share = float(((x**2).sum(axis=1) < 1).mean())
    return 4 * share, 4 * math.sqrt(share * (1 - share) / len(x))


rows = {}
grid = ct.cdiv(2 * pairs, 256)  # a thread for each number
ct.Kernel(launch.FILL, "lcg")(out, 2 * pairs, 1, grid=grid, block=256)
rows["a generator per thread"] = pi_of(out.get())
launch.fill(out, "uniform", seed=1)()
rows["Philox"] = pi_of(out.get())
ct.table(
    "pi from the numbers of neighbors",
    {
        name: {"pi": pi, "error": error, "off / error": (pi - math.pi) / error}
        for name, (pi, error) in rows.items()
    },
    corner="numbers",
)
