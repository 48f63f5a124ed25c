"""Launches that overlap: no kernel of `llm` reads what the one before it writes, before that one has ended."""

import launcher_tables
import numpy as np
import pytest
from launcher_contents import ROWS, content

import cudatut as ct
from cudatut import catalog
from cudatut.paths import examples_dir

# Lets the next one begin at once, and writes long after.
LATE = """
#include "ptx/overlap.cuh"
extern "C" __global__ void late(const unsigned char* from, unsigned char* to, int bytes) {
  begin_next();
  const long long until = clock64() + 600000;
  while (clock64() < until) {
  }
  for (int i = threadIdx.x; i < bytes; i += blockDim.x) to[i] = from[i];
}
"""
# What a kernel before writes; weights, tables and lengths are there before.
WRITTEN_BEFORE = ("x", "h", "qkv", "q", "gate_up")
# The first two belong to no such chain; embed's x is what it writes.
NOT_HERE = (
    *("llm.kernels.norms.add_rms_norm", "llm.kernels.norms.layer_norm"),
    "llm.kernels.activation.embed",
)
NOT_COMPARED = ("partials", "tickets", "norm.squares")


def overlapping() -> dict:
    """The launchers whose kernels say `wait_for_previous`, of the table, by their names. A module has the name of its kernels' file."""
    waiting = {
        ".".join(path.relative_to(examples_dir()).with_suffix("").parts)
        for path in (examples_dir() / "llm").rglob("*.cu")
        for file in catalog.with_includes(path)
        if file.name != "overlap.cuh" and "wait_for_previous()" in file.read_text(encoding="utf-8")
    }
    # linear_qkv.py launches kernels of linear.cu with another end.
    modules = waiting | {"llm.kernels.linear_qkv"}
    return {
        name: case
        for name, case in launcher_tables.cases(ROWS).items()
        if case.module in modules
        and any(one in case.arrays for one in WRITTEN_BEFORE)
        and case.launcher not in NOT_HERE
    }


NAMES = list(overlapping())


def test_all_that_wait_are_here():
    """Each kernel file that waits, or is included by one, has a launcher in this test."""
    launched = {overlapping()[name].module.removeprefix("llm.kernels.") for name in NAMES}
    assert launched >= {
        *("activation", "attention.decode", "attention.flash", "attention.flash_hopper_paged"),
        *("attention.flash_parts", "fused", "gemv", "linear", "linear_hopper", "linear_qkv"),
        *("norms", "rope"),
    }


def fresh(name: str) -> dict:
    rng = np.random.default_rng(3)
    return {
        one: ct.to_device(content(name, one, spec.dtype, spec.shape, rng))
        for one, spec in overlapping()[name].arrays.items()
    }


def late_before(launch, array, true, stream):
    """A graph: what `true` holds is written into an array late, by a kernel that lets the next one, of `launch`, begin at once."""
    from cudatut.book.measure.graphs import Graph

    late = ct.Kernel(LATE, "late")
    places = [np.uint64(one.__cuda_array_interface__["data"][0]) for one in (true, array)]

    def work():
        late(*places, true.nbytes, grid=1, block=256, stream=stream)
        launch()

    return Graph(work, stream, overlap=True)


@pytest.fixture(autouse=True)
def needs_overlap():
    if ct.device().compute_capability < (9, 0):
        pytest.skip("launches overlap from sm_90 on")


@pytest.mark.parametrize("name", NAMES)
def test_what_the_kernel_before_writes_is_waited_for(name):
    import pycuda.driver as cuda

    case, stream = overlapping()[name], cuda.Stream()
    written = [one for one, spec in case.arrays.items() if spec.written and one not in NOT_COMPARED]
    before = next(one for one in WRITTEN_BEFORE if one in case.arrays)

    plain = fresh(name)
    ct.synchronize()
    case.launch(plain, stream=stream)  # compiles, and makes what it needs
    stream.synchronize()

    arrays, true = fresh(name), fresh(name)[before]
    graph = late_before(lambda: case.launch(arrays, stream=stream), arrays[before], true, stream)
    for _ in range(3):
        for one, host in fresh(name).items():
            arrays[one].set(np.zeros_like(host.get()) if one == before else host.get())
        ct.synchronize()
        graph.launch()
        stream.synchronize()
        for one in written:
            np.testing.assert_array_equal(
                arrays[one].get().view("uint8"), plain[one].get().view("uint8"), err_msg=one
            )


@pytest.mark.parametrize(("dtype", "width"), [("uint16", 64), ("uint8", 64 // 32 * 34)])
def test_tokens_that_are_drawn_just_before_are_waited_for(dtype, width):
    """Of `embed`, which reads nothing else of the kernel before; its table in bf16 and in Q8_0."""
    import pycuda.driver as cuda

    from cudatut.book.llm.kernels import activation

    rng, stream = ct.rng(5), cuda.Stream()
    table = ct.to_device(rng.integers(0, 256, (50, width)).astype(dtype))
    tokens = ct.to_device(np.arange(-1, -8, -1, dtype="int32"))  # each the next of those drawn
    true, drawn = ct.to_device(rng.integers(1, 50, 7).astype("int32")), ct.empty(7, "int32")
    x = ct.empty((7, 64), "float32")
    ct.synchronize()
    activation.embed(tokens, table, x, stream=stream, drawn=true)
    stream.synchronize()
    expected = x.get().view("uint8")

    def launch():
        activation.embed(tokens, table, x, stream=stream, drawn=drawn)

    graph = late_before(launch, drawn, true, stream)
    for _ in range(3):
        drawn.set(np.zeros(7, "int32"))
        ct.poison(x)
        ct.synchronize()
        graph.launch()
        stream.synchronize()
        np.testing.assert_array_equal(x.get().view("uint8"), expected)
