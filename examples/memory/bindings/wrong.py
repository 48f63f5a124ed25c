# ---
# jupyter:
#   cudatut:
#     title: {en: "Arguments that do not fit", zh: "不合适的参数"}
#     requires: sm_75
#     extra: bindings
#     timeout_s: 180
#     alone: false
# ---

# %% [markdown]
# ctypes does not know a C function's types. `labs` of the C library takes a
# whole number of 8 bytes and returns one; of a positive number, the same.

# %% undeclared
import ctypes

import numpy as np

import cudatut as ct
from cudatut.book.memory.bindings.building import address, build, imported

y = ct.to_device(np.zeros(1000, "float32"))


def comes_back(**declared):
    """Whether an address comes back whole."""
    labs = ctypes.CDLL(None).labs  # a new object each time
    for name, value in declared.items():
        setattr(labs, name, value)
    return labs(address(y)) == address(y)


eight = ctypes.c_long
ct.facts(
    "an address comes back whole, when one declares",
    {
        "nothing": comes_back(),
        "restype": comes_back(restype=eight),
        "argtypes and restype": comes_back(restype=eight, argtypes=[eight]),
    },
)

# %% [markdown]
# A module made with nanobind knows them: each of these calls is refused before
# anything reaches the GPU.

# %% refused
cupy = ct.vendor.cupy()
if cupy and not ct.tool.running():
    nano = imported(build("module"))
    x = cupy.ones(1000, "float32")
    tries = {
        "float32, on the GPU": (x, cupy.ones(1000, "float32")),
        "float64": (x.astype("float64"), x),
        "on the host": (np.ones(1000, "float32"), x),
        "every other element": (x[::2], x[:500]),
        "another length": (x[:500], x),
        "an address": (address(x), x),
    }
    said = {}
    for name, arrays in tries.items():
        try:
            nano.saxpy(2, *arrays)
            said[name] = "taken"
        except (TypeError, ValueError) as error:
            said[name] = type(error).__name__
    ct.facts("what nanobind says", said)

# %% [markdown]
# Without `noconvert`, nanobind makes a float32 array of a float64 one. The
# result goes there, and nobody sees it.

# %% converted
if cupy and not ct.tool.running():
    changed = {}
    for kind in ("float32", "float64"):
        y = cupy.ones(1000, kind)
        nano.saxpy_converting(2, x, y)
        changed[f"{kind}, elements changed"] = int((y != 1).sum())
    ct.facts("y, where it may be converted", changed)
