"""Every launcher with a grid of arrays that it may not expect: what it refuses leaves all memory as it was, and what it takes
gives the result of the plain call, and no byte beside it.

tests/launchers looks at the same grid without a GPU, where nothing tells whether a result is right. The launchers of products
are those of product_launchers.py, the others those of llm_launchers.py; the rivals, which need libraries, stand here.
"""

import itertools
from dataclasses import dataclass
from typing import Any

import launcher_tables
import numpy as np
import pytest
from launcher_cases import Case, Spec, bf16, f32, i32
from launcher_contents import ROWS, content

import cudatut as ct
from cudatut.book.llm.kernels import activation, linear, norms, row_softmax
from cudatut.book.rivals import cublas_grouped, cublas_types, cublaslt
from cudatut.book.tensor.gemm import gemm, tf32_product

PAD, BESIDE = 4096, 0xC3
# cublasLt refuses itself some products of types that it has, before anything is launched.
REFUSED = (TypeError, ValueError, ct.LaunchError, cublaslt.Refused)
OTHERS = (
    "float16",
    "uint16",
    "int16",
    "int32",
    "uint32",
    "float32",
    "float64",
    "int64",
    "uint8",
    "int8",
)
# What no caller compares: parts of sums that blocks leave for each other, and cycles.
WORKSPACE = {"partials", "norm.squares", "times"}


def rivals(n: int) -> dict[str, Case]:
    """The vendor's functions, and the others' libraries that the examples call."""
    found, k, columns = {}, 64, 40

    def case(name, launch, arrays, **more):
        found[name] = Case(name, launch, arrays, **more)

    def run(rival):
        assert rival, rival
        rival()
        return [rival.out] if hasattr(rival, "out") else []

    words = {"free": (None,), "kinds": ("int32", "uint32")}
    flat = {"target": f32(n * 8, written=True, **words), "source": f32(n * 8, **words)}
    case("vendor.copy", lambda a: run(ct.vendor.copy(**a)), flat)
    same = {name: f32(n, 8) for name in ("x", "y")} | {"out": f32(n, 8, written=True)}
    case(
        "vendor.add",
        lambda a: run(ct.vendor.add(**a)),
        same,
        over=frozenset({("out", "x"), ("out", "y")}),
    )
    case(
        "vendor.sum",
        lambda a: run(ct.vendor.sum(**a)),
        {"x": i32(n * 8, free=(0, None), kinds=("float32",))},
    )
    case(
        "vendor.histogram",
        lambda a: run(ct.vendor.histogram(**a)),
        {"x": Spec("uint8", (n * 8,), free=(0, None))},
    )
    product = {"a": f32(n, k), "b": f32(k, columns), "out": f32(n, columns, written=True)}
    case("vendor.matmul", lambda a: run(ct.vendor.matmul(**a)), product)
    for flags in itertools.product((False, True), repeat=2):
        arrays = {
            "a": f32(*((k, n) if flags[0] else (n, k))), "b": f32(*((columns, k) if flags[1] else (k, columns))),
            "c": f32(n, columns, written=True),
        }  # fmt: skip
        case(
            f"vendor.gemm, {flags}",
            lambda a, flags=flags: run(
                ct.vendor.gemm(**a, beta=0.5, transpose_a=flags[0], transpose_b=flags[1])
            ),
            arrays,
        )
    c = f32(n, columns, written=True)
    for name, dtype in (("fp16", "float16"), ("bf16", "uint16"), ("tf32", "float32")):
        arrays = {"a": Spec(dtype, (n, k)), "b": Spec(dtype, (k, columns)), "c": c}
        case(
            f"cublas_types.{name}",
            lambda a, name=name: run(getattr(cublas_types, name)(**a)),
            arrays,
        )
    case(
        "cublas_types.tf32, transposed",
        lambda a: run(cublas_types.tf32(**a, transpose_b=True)),
        {"a": f32(n, k), "b": f32(columns, k), "c": c},
    )
    case(
        "cublas_grouped", lambda a: run(cublas_grouped.product(a["x"], a["weights"], [1, 2, n], a["out"])),
        {"x": bf16(n, k), "weights": bf16(3, columns, k), "out": bf16(n, columns, written=True)},
    )  # fmt: skip
    case(
        "cublaslt",
        lambda a: run(cublaslt.offers(**a)[0]),
        {"a": f32(n, k), "b": f32(k, columns), "c": c},
    )
    arrays = {
        "a": bf16(n, k), "b": bf16(k, columns),
        "c": bf16(n, columns, written=True, kinds=("float32",)),
    }  # fmt: skip
    case("cublaslt, bf16", lambda a: run(cublaslt.offers(**a, kind="bf16")[0]), arrays)
    return found


TABLES = {"ours": launcher_tables.cases, "rivals": rivals}
NAMES = [(table, name) for table, cases in TABLES.items() for name in cases(ROWS)]


@dataclass
class Laid:
    """An array inside memory of its own, whose every other byte is known; `array` is what a launcher gets."""

    held: np.ndarray
    strides: tuple[int, ...]
    shift: int
    memory: Any = None
    array: Any = None

    @classmethod
    def out(
        cls, held: np.ndarray, strides: tuple[int, ...] | None = None, shift: int = 0
    ) -> "Laid":
        from pycuda.gpuarray import GPUArray

        laid = cls(held, held.strides if strides is None else strides, shift)
        laid.memory = ct.to_device(laid.image(held))
        pointer = int(laid.memory.gpudata) + PAD + shift
        laid.array = GPUArray(
            held.shape, held.dtype, base=laid.memory, gpudata=pointer, strides=laid.strides
        )
        return laid

    def image(self, held: np.ndarray) -> np.ndarray:
        """All bytes of its memory, if it holds this."""
        reach = (
            sum((extent - 1) * step for extent, step in zip(held.shape, self.strides))
            if held.size
            else 0
        )
        whole = np.full(2 * PAD + self.shift + reach + held.itemsize, BESIDE, "uint8")
        self.view(whole)[...] = held
        return whole

    def view(self, whole: np.ndarray) -> np.ndarray:
        return np.ndarray(self.held.shape, self.held.dtype, whole, PAD + self.shift, self.strides)

    def now(self) -> np.ndarray:
        """What it holds. Fails where a byte beside its elements has changed."""
        whole = self.memory.get()
        held = self.view(whole).copy()
        assert np.array_equal(whole, self.image(held)), "bytes beside the array were written"
        return held

    def is_untouched(self) -> bool:
        return np.array_equal(self.memory.get(), self.image(self.held))


def laid_out(case: Case, name: str, seed: int = 0) -> dict[str, Laid]:
    rng = np.random.default_rng(seed)
    return {
        which: Laid.out(content(name, which, spec.dtype, spec.shape, rng))
        for which, spec in case.arrays.items()
    }


def arrays_of(laid: dict[str, Laid]) -> dict[str, Any]:
    return {name: one.array for name, one in laid.items()}


def results(case: Case, arrays: dict[str, Any], laid: dict[str, Laid]) -> dict[str, np.ndarray]:
    """What a launch leaves in what it writes, and returns. Fails where anything else has changed."""
    returned = case.launch(arrays)
    ct.synchronize()
    found = {str(i): one.get() for i, one in enumerate(flattened(returned))}
    for name, spec in case.arrays.items():
        if name not in laid:
            continue
        if spec.written:
            now = laid[name].now()
            if name not in WORKSPACE:
                found[name] = now
        else:
            assert laid[name].is_untouched(), f"{name}, which is read, has changed"
    return found


def flattened(value: Any) -> list:
    if isinstance(value, (list, tuple)):
        return [one for part in value for one in flattened(part)]
    return [value] if hasattr(value, "gpudata") else []


def numbers(array: np.ndarray) -> np.ndarray:
    if array.dtype == "uint16":
        return (array.astype("uint32") << 16).view("float32").astype("float64")
    return array.astype("float64")


def assert_same(found: dict, wanted: dict, what: str) -> None:
    """As results of another order of the same sums are."""
    assert found.keys() == wanted.keys()
    for name, want in wanted.items():
        got, want = numbers(found[name]), numbers(want)
        size = np.abs(want[np.isfinite(want)]).max(initial=0.0)
        near = np.isclose(got, want, rtol=2e-2, atol=1e-2 * size, equal_nan=True)
        assert near.all(), (
            f"{what}: {name} differs at {np.argwhere(~near)[:3].tolist()} and more: {(~near).sum()}"
        )


def spread(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    return tuple(itemsize * int(np.prod(shape[axis + 1 :])) for axis in range(len(shape)))


def rows_apart(held: np.ndarray, leading: int, nbytes: int = 32) -> tuple[int, ...]:
    steps = spread(held.shape, held.itemsize)
    row = steps[leading - 1] + nbytes
    before = [row * int(np.prod(held.shape[axis + 1 : leading])) for axis in range(leading)]
    return (*before, *steps[leading:])


# ------------------------------------------------------------------------------------------------ the grid
def odd_views(held: np.ndarray):
    """(what, strides, shift) of views with the same elements elsewhere."""
    steps, size = spread(held.shape, held.itemsize), held.itemsize
    if held.size > 1:
        yield "elements apart", tuple(2 * step for step in steps), 0
    for leading in range(1, held.ndim):
        if int(np.prod(held.shape[:leading])) > 1:
            yield f"rows of {leading} axes apart", rows_apart(held, leading), 0
            yield f"rows of {leading} axes apart by one", rows_apart(held, leading, size), 0
    if held.ndim > 1:
        turned = np.empty(held.shape[::-1], held.dtype).T
        yield "turned", turned.strides, 0
    for shift in {size, 8, 16}:
        if shift % size == 0:
            yield f"{shift} bytes further on", steps, shift


def odd_arrays(held: np.ndarray, spec: Spec):
    """(what, array) of other types and shapes; those that a launcher may take for another kind are left out."""
    for dtype in OTHERS:
        if dtype not in (spec.dtype, *spec.kinds) and np.dtype(dtype).itemsize >= 1:
            yield f"of {dtype}", np.zeros(held.shape, dtype)
    if None in spec.free:
        if held.size and 0 not in spec.free:
            yield "too short", held.reshape(-1)[:-1].copy()
        return
    for axis, extent in enumerate(held.shape):
        if axis in spec.free:
            continue
        for other in (extent - 1, extent + 1):
            yield (
                f"axis {axis} of {other}",
                np.zeros((*held.shape[:axis], other, *held.shape[axis + 1 :]), held.dtype),
            )
    yield "one axis more", held[None].copy()
    if held.ndim:
        yield "one axis less", held.reshape(-1)[0].copy() if held.ndim == 1 else held[0].copy()


# Another kind, by which another kernel is chosen; the other arrays then have other shapes.
ALSO = {("add_rms_norm", "added"), ("decode.paged, uint16", "keys")}


@pytest.mark.parametrize(("table", "name"), NAMES, ids=[name for _, name in NAMES])
def test_wrong_arrays_are_refused_or_handled(table, name):
    if name.startswith(launcher_tables.NEEDS_HOPPER) and ct.device().compute_capability[0] != 9:
        pytest.skip("its kernel is Hopper's")
    case = TABLES[table](ROWS)[name]
    laid = laid_out(case, name)
    plain = results(case, arrays_of(laid), laid)
    assert plain or not any(spec.written for spec in case.arrays.values())
    for which, now in plain.items():
        if which in laid and which not in ("tickets", "best"):
            assert not np.array_equal(now, laid[which].held), (
                f"the plain call left {which} as it was"
            )
    refused = handled = 0
    for which, spec in case.arrays.items():
        for what, strides, shift in odd_views(laid[which].held):
            given = laid_out(case, name)
            given[which] = Laid.out(given[which].held, strides, shift)
            together = next((set(pair) - {which} for pair in case.apart if which in pair), set())
            for other in together if "apart" in what and "elements" not in what else ():
                given[other] = Laid.out(given[other].held, strides, shift)
            try:
                found = results(case, arrays_of(given), given)
            except REFUSED as error:
                assert len(str(error)) > 20
                assert all(one.is_untouched() for one in given.values()), (
                    f"{which} {what}: refused, but written"
                )
                refused += 1
            else:
                assert_same(found, plain, f"{name}, {which} {what}")
                handled += 1
        if (name.split(" of ")[0], which) in ALSO:
            continue
        given = laid_out(case, name)
        for what, host in odd_arrays(laid[which].held, spec):
            with pytest.raises(REFUSED):
                case.launch(arrays_of(given) | {which: ct.to_device(host)})
                pytest.fail(f"{name}: {which} {what} was taken")
            refused += 1
        ct.synchronize()
        assert all(one.is_untouched() for one in given.values()), f"{which}: refused, but written"
    print(f"{name}: {refused} refused, {handled} handled")


@pytest.mark.parametrize(("table", "name"), NAMES, ids=[name for _, name in NAMES])
def test_what_is_written_shares_no_memory(table, name):
    """The same array as another one, and one that begins inside another."""
    from pycuda.gpuarray import GPUArray

    if name.startswith(launcher_tables.NEEDS_HOPPER) and ct.device().compute_capability[0] != 9:
        pytest.skip("its kernel is Hopper's")
    case = TABLES[table](ROWS)[name]
    for written, other in itertools.permutations(case.arrays, 2):
        if not case.arrays[written].written:
            continue
        one, another = case.arrays[written], case.arrays[other]
        for inside in (False, True):
            given = laid_out(case, name)
            laid = given[written]
            step = 16 if inside and laid.held.nbytes > 16 else 0
            if inside and not step:
                continue
            if (written, other) in case.over and one[:2] == another[:2] and not inside:
                # Both are what is read.
                plain = results(case, arrays_of(given), given)
                given = laid_out(case, name)
                shared = Laid.out(given[other].held)
                given.pop(other)
                given[written] = shared
                found = results(case, arrays_of(given) | {other: shared.array}, given)
                assert_same(found, plain, f"{name}: {other} is {written}")
                continue
            pointer = int(laid.array.gpudata) + step
            shared = GPUArray(another.shape, another.dtype, base=laid.memory, gpudata=pointer)
            with pytest.raises(REFUSED):
                case.launch(arrays_of(given) | {other: shared})
                pytest.fail(f"{name}: {other} in {written} was taken")
            ct.synchronize()
            assert all(part.is_untouched() for part in given.values())


# ------------------------------------------------------------------------------------------------ many rows
def many_rows():
    """Launchers with so narrow rows that 2^31 - 1025 of them have room on a large GPU: name, dtypes and widths of what has
    rows, which of these is written, and the launch."""
    weight = ct.to_device(np.ones(8, "uint16") * 0x3F80)
    square, tall = (ct.to_device(content("", "", "uint16", (8, 8), ct.rng(1))) for _ in range(2))
    four = ct.to_device(ct.rng(2).standard_normal((4, 4), dtype="float32"))
    return {
        "rms_norm": ({"x": ("uint16", 8), "out": ("uint16", 8)}, lambda a: norms.rms_norm(a["x"], weight, a["out"], 1e-5)),
        "softmax": ({"x": ("uint16", 8), "out": ("uint16", 8)}, lambda a: row_softmax.softmax(a["x"], a["out"])),
        "swiglu": ({"x": ("uint16", 16), "out": ("uint16", 8)}, lambda a: activation.swiglu(a["x"], a["out"])),
        "linear": ({"x": ("uint16", 8), "out": ("uint16", 8)}, lambda a: linear.linear(a["x"], square, a["out"])),
        "gemm": ({"x": ("uint16", 8), "out": ("uint16", 8)}, lambda a: gemm.prepare(a["x"], tall, a["out"])()),
        "tf32": ({"x": ("float32", 4), "out": ("float32", 4)}, lambda a: tf32_product.prepare(a["x"], four, a["out"], transpose_b=True)()),
    }  # fmt: skip


PERIOD = 1 << 12  # rows


@pytest.mark.alone
@pytest.mark.parametrize("name", ["rms_norm", "softmax", "swiglu", "linear", "gemm", "tf32"])
def test_nearly_two_to_the_31_rows(name):
    """Rows that repeat: the results repeat, up to the last one. So an index that overflows is seen."""
    arrays, launch = many_rows()[name]
    rows = (1 << 31) - 1025
    size = {which: np.dtype(dtype).itemsize * width for which, (dtype, width) in arrays.items()}
    if sum(size.values()) * rows > ct.device().memory_bytes * 0.9:
        pytest.skip(f"needs {sum(size.values()) * rows >> 30} GiB of GPU memory")
    import pycuda.driver as cuda

    dtype, width = arrays["x"]
    block = content("", "x", dtype, (PERIOD, width), ct.rng(3))
    x, out = (ct.empty((rows, width), dtype) for dtype, width in (arrays["x"], arrays["out"]))
    x[:PERIOD].set(block)
    done, bytes_ = PERIOD, size["x"]
    while done < rows:
        more = min(done, rows - done)
        cuda.memcpy_dtod(int(x.gpudata) + done * bytes_, int(x.gpudata), more * bytes_)
        done += more
    launch({"x": x, "out": out})
    small = {
        "x": ct.to_device(block),
        "out": ct.empty((PERIOD, arrays["out"][1]), arrays["out"][0]),
    }
    launch(small)
    want = small["out"].get()
    whole = rows // PERIOD
    for first in (0, whole // 2, whole - 1):
        got = out[first * PERIOD : (first + 1) * PERIOD].get()
        assert_same({"out": got}, {"out": want}, f"rows from {first * PERIOD}")
    tail = rows - whole * PERIOD
    assert_same({"out": out[whole * PERIOD :].get()}, {"out": want[:tail]}, "the last rows")
