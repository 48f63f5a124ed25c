# ---
# jupyter:
#   cudatut:
#     title: {en: "Python, C++ and back", zh: "Python 与 C++ 互相调用"}
#     requires: sm_75
#     extra: bindings
#     timeout_s: 240
#     sizes:
#       count: [240, 3]
#       rounds: [25, 1]
# ---

# %% [markdown]
# The same kernel, called in different ways. Each call is so short that what
# counts is the way from Python to the GPU's driver.

# %% program
import statistics
from time import perf_counter

import numpy as np
from pycuda.compiler import SourceModule

import cudatut as ct
from cudatut.book.memory.bindings.building import (
    address, build, declared, text,
)  # fmt: skip

n = 1000
count = 240  # calls
rounds = 25
x = ct.to_device(ct.rng(0).random(n, dtype="float32"))
y = ct.to_device(ct.rng(1).random(n, dtype="float32"))
module = SourceModule(text("saxpy.cuh"), no_extern_c=True)
saxpy = module.get_function("saxpy")
library = declared(build("lib"))


def calls(function, *arguments, **launch):
    """A function that calls another one `count` times."""

    def run():
        for _ in range(count):
            function(*arguments, **launch)

    return run


where = address(x), address(y)
shape = {"grid": (ct.cdiv(n, 256), 1), "block": (256, 1, 1)}
runs = {
    "PyCUDA": calls(saxpy, np.float32(2), x, y, np.int32(n), **shape),
    "ctypes": calls(library.saxpy_launch, 2, *where, n, None),
    "ctypes, does nothing": calls(library.saxpy_nothing, 2, *where, n, None),
    "a loop in C++": lambda: library.saxpy_launches(2, *where, n, None, count),
}
times = {name: [] for name in runs}
for _ in range(1 + rounds):
    for name, run in runs.items():
        ct.synchronize()
        begin = perf_counter()
        run()
        times[name].append(perf_counter() - begin)
us = {k: 1e6 * statistics.median(v[1:]) / count for k, v in times.items()}
ct.yours("memory/bindings#program", {k: (v, "us") for k, v in us.items()})

# %% [markdown]
# The other ways: NVRTC through cuda.core, and a module made with nanobind. It
# takes addresses, or arrays that CuPy or PyTorch have on the GPU.

# %% core
from cudatut.book.memory.bindings.building import by_nvrtc

kernel = by_nvrtc(text("saxpy.cuh"), "saxpy")
from cuda.core import Device, LaunchConfig, launch

default = Device().default_stream
config = LaunchConfig(grid=ct.cdiv(n, 256), block=256)
numbers = np.float32(2), np.int32(n)
# An int is taken for an address; numbers carry their type.
launch(default, config, kernel, numbers[0], *where, numbers[1])

# %% nanobind
from cudatut.book.memory.bindings.building import here, imported


def ms(make):
    """What it made, and the milliseconds that it took."""
    begin = perf_counter()
    made = make()
    return made, 1e3 * (perf_counter() - begin)


nano = None
if not ct.tool.running():  # no kernel of ours is in it
    made, built = ms(lambda: build("module", here("module")))
    nano, loaded = ms(lambda: imported(made))
cupy = ct.vendor.cupy()
if nano and cupy:
    on_gpu = cupy.asarray(x), cupy.asarray(y)  # the same memory
    nano.saxpy(2, *on_gpu)

# %% [markdown]
# Is each way right, at every length, on other numbers each time?


# %% check
def once(m, x, y):
    """By way: one call on arrays of length m."""
    grid = max(ct.cdiv(m, 256), 1)
    a, places = np.float32(2), (address(x), address(y))
    how = {"grid": (grid, 1), "block": (256, 1, 1)}
    shaped = LaunchConfig(grid=grid, block=256)
    found = {
        "PyCUDA": lambda: saxpy(a, x, y, np.int32(m), **how),
        "cuda.core": lambda: launch(
            default, shaped, kernel, a, *places, np.int32(m)
        ),
        "ctypes": lambda: library.saxpy_launch(2, *places, m, None),
        "a loop in C++": lambda: library.saxpy_launches(2, *places, m, None, 1),
    }
    if nano:
        found["nanobind, addresses"] = lambda: nano.launch(2, *places, m, 0)
    if nano and cupy:
        arrays = cupy.asarray(x), cupy.asarray(y)
        found["nanobind, arrays"] = lambda: nano.saxpy(2, *arrays)
    return found


for seed, m in enumerate(filter(None, ct.RAGGED)):
    x_host, y_host = ct.rng(seed).random((2, m), dtype="float32")
    x_m = ct.to_device(x_host)
    for way in once(m, x_m, x_m):
        y_m = ct.to_device(y_host)
        once(m, x_m, y_m)[way]()
        ct.check(y_m, 2 * x_host + y_host, name=f"{way}, n = {m}")

# %% [markdown]
# What a call takes on the host, each way. A call by ctypes or nanobind is
# predicted: the same call to a function that does nothing, and a launch in C++.

# %% ways
import random

from cudatut.book.memory.graphs.ways import on_host

prepared = module.get_function("saxpy").prepare("fPPi")
by_core = default, config, kernel, numbers[0], *where, numbers[1]
runs |= {
    "nothing in Python": calls(
        lambda a, x, y, n, stream: None, 2, *where, n, 0
    ),
    "PyCUDA, prepared": calls(
        prepared.prepared_call, shape["grid"], shape["block"], 2, *where, n
    ),
    "cuda.core": calls(launch, *by_core),
}
if nano:
    runs["nanobind, addresses"] = calls(nano.launch, 2, *where, n, 0)
    runs["nanobind, does nothing"] = calls(nano.nothing, 2, *where, n, 0)
if nano and cupy:
    runs["nanobind, arrays"] = calls(nano.saxpy, 2, *on_gpu)
for run in runs.values():
    run()  # the first time costs more
times = ct.take_turns(runs, rounds, random.Random(0), time=on_host)
us = {name: statistics.median(found) / count for name, found in times.items()}
inner = us["a loop in C++"]


# %% ways-table
def row(way, nothing=None):
    """What was measured, and what was predicted where there is a control."""
    empty = us[nothing] if nothing else None
    expected = empty + inner if nothing else None
    return {
        "a call": us[way],
        "a call that does nothing": empty,
        "predicted": expected,
        "measured / predicted": us[way] / expected if nothing else None,
    }


table = {
    "PyCUDA": row("PyCUDA"),
    "PyCUDA, prepared": row("PyCUDA, prepared"),
    "cuda.core": row("cuda.core"),
    "ctypes": row("ctypes", "ctypes, does nothing"),
}
if nano:
    addresses = "nanobind, addresses"
    table[addresses] = row(addresses, "nanobind, does nothing")
if nano and cupy:
    table["nanobind, arrays"] = row("nanobind, arrays")
table["a loop in C++"] = row("a loop in C++")
table["nothing in Python"] = row("nothing in Python")
ct.table(
    "a call, on the host",
    table,
    corner="called by",
    units=dict.fromkeys(
        ("a call", "a call that does nothing", "predicted"), "us"
    ),
)

# %% [markdown]
# What comes before the first call: from the source, and the next time. A
# library or module is built in an empty folder.

# %% before
from functools import partial


def compiled(**how):
    source = text("saxpy.cuh")
    return SourceModule(source, no_extern_c=True, **how).get_function("saxpy")


def compiled_again():
    return by_nvrtc(text("saxpy.cuh"), "saxpy")


rows = {
    "PyCUDA": (lambda: compiled(cache_dir=False), lambda path: compiled()),
    "cuda.core": (compiled_again, lambda path: compiled_again()),
    "ctypes": (lambda: build("lib", here("again")), declared),
}
before = {}
for name, (first, then) in rows.items():
    made, took = ms(first)
    _, again = ms(partial(then, made))
    before[name] = {"from source": took, "next time": again}
if nano:  # as it was built above
    before["nanobind"] = {"from source": built, "next time": loaded}
ct.table(
    "before the first call",
    before,
    corner="called by",
    units=dict.fromkeys(("from source", "next time"), "ms"),
)

# %% pays
more = 1e3 * (before["ctypes"]["from source"] - before["PyCUDA"]["from source"])
less = us["PyCUDA"] - us["ctypes"]
ct.facts(
    "what a library saves",
    {
        "a call by PyCUDA / by ctypes": (us["PyCUDA"] / us["ctypes"], "x"),
        "a call by ctypes / in C++": (us["ctypes"] / inner, "x"),
        "saved by a call": (less, "us"),
        "built later by": (more / 1e3, "ms"),
    },
)
