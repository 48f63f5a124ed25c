"""What launchers take and what they refuse, before anything is launched or allocated: a grid of wrong arrays over a table of
all launchers. Arrays that only tell of themselves, kernels whose parameters are looked up in their sources; no GPU."""

import ast
import functools
import sys
from types import SimpleNamespace
from typing import ClassVar

import llm_launchers
import numpy as np
import pytest
from launcher_cases import Case
from launcher_tables import cases
from on_gpu import Told
from product_launchers import NOT_OF_OTHERS

import cudatut as ct
from cudatut.gpu.signature import parameters
from cudatut.paths import examples_dir

ROWS = 3
FULL, EMPTY = cases(ROWS), cases(0)
REFUSED = TypeError, ValueError
NO_LAUNCH = ValueError, ct.LaunchError
H100 = SimpleNamespace(
    sm_count=132,
    shared_per_sm=233472,
    shared_per_block_optin=232448,
    compute_capability=(9, 0),
    max_threads_per_block=1024,
)


class Kernel(ct.Kernel):
    """Converts its arguments as all kernels do, by the parameters of its source, and notes the launch."""

    launched: ClassVar[list[str]] = []

    def __init__(self, source, name, *_, **__):
        self.name = name
        self.parameters = parameters((examples_dir() / source).read_text(), name)
        assert self.parameters, name

    def __call__(self, *arguments, grid, block, shared=0, stream=None):
        assert len(arguments) == len(self.parameters), self.name
        for parameter, value in zip(self.parameters, arguments, strict=True):
            (self._pointer if parameter.pointer else self._number)(parameter, value)
        extents = grid if isinstance(grid, tuple) else (grid,)
        for extent, most in zip(extents, ((1 << 31) - 1, 65535, 65535), strict=False):
            if not 1 <= extent <= most:  # as the real one does
                raise ct.LaunchError(f"{self.name}: a grid of {grid}")
        threads = np.prod(block)
        assert 1 <= threads <= 1024 and shared <= H100.shared_per_block_optin
        Kernel.launched.append(self.name)

    def resources(self, block=256, shared=0):
        return SimpleNamespace(blocks_per_sm=1)


@pytest.fixture(autouse=True, scope="module")
def without_gpu():
    """An H100 whose kernels do nothing, and where nothing is allocated; what was cached is forgotten afterwards."""

    def forget():
        for module in list(sys.modules.values()):
            if (getattr(module, "__file__", None) or "").startswith(str(examples_dir())):
                for found in vars(module).values():
                    if isinstance(found, functools._lru_cache_wrapper):
                        found.cache_clear()

    def nothing(*_, **__):
        raise AssertionError("allocated before all was checked")

    forget()
    with pytest.MonkeyPatch.context() as patch:
        for name, what in (
            ("Kernel", Kernel), ("device", lambda: H100), ("empty", nothing), ("to_device", nothing),
            ("tensor_map", lambda *_, **__: bytes(128)), ("synchronize", lambda: None),
        ):  # fmt: skip
            patch.setattr(ct, name, what)
        yield
    forget()


@pytest.fixture
def counters(monkeypatch):
    """What a good launch may allocate: counters, parts of sums, copies of factors."""

    def empty(shape, dtype):
        return Told(dtype, *(shape if isinstance(shape, tuple) else (shape,)))

    monkeypatch.setattr(ct, "to_device", lambda host: Told(host.dtype.name, *host.shape))
    monkeypatch.setattr(ct, "empty", empty)


def told(case: Case) -> dict[str, Told]:
    return {name: Told(spec.dtype, *spec.shape) for name, spec in case.arrays.items()}


def strides_of(array: Told) -> tuple[int, ...]:
    size = array.dtype.itemsize
    return tuple(size * int(np.prod(array.shape[axis + 1 :])) for axis in range(len(array.shape)))


def with_rows_apart(array: Told, leading: int, nbytes: int = 32) -> Told:
    """The same with so many bytes behind each row. Rows of the leading axes stay evenly apart."""
    row = strides_of(array)[leading - 1] + nbytes
    before = [row * int(np.prod(array.shape[axis + 1 : leading])) for axis in range(leading)]
    strides = (*before, *strides_of(array)[leading:])
    return Told(array.dtype.name, *array.shape, strides=strides)


def refused(case: Case, arrays: dict, kinds=REFUSED, what: str = "", **numbers) -> None:
    Kernel.launched.clear()
    with pytest.raises(kinds) as raised:
        case.launch(arrays, **numbers)
    assert not Kernel.launched, f"{case.launcher} with {what}: launched, then {raised.value}"
    if isinstance(raised.value, ValueError | TypeError):
        assert len(str(raised.value)) > 20, "a message that says what to do"


def handled(case: Case, arrays: dict, kernels: int, **numbers) -> None:
    Kernel.launched.clear()
    case.launch(arrays, **numbers)
    assert kernels <= len(Kernel.launched) <= 3 * kernels, case.launcher


def is_launch(keywords: set[str | None]) -> bool:
    """A grid, or `**shape` with a stream."""
    return "grid" in keywords or {None, "stream"} <= keywords


def public_launchers() -> set[str]:
    """Module and name (`place`) of all functions of the examples' modules that give a grid to a kernel, themselves or by other
    functions of their module. Chapters, which have cells, are no modules."""
    found = set()
    for file in sorted(examples_dir().rglob("*.py")):
        text = file.read_text()
        if "\n# %%" in text or text.startswith("# %%"):
            continue
        functions = {f.name: f for f in ast.parse(text).body if isinstance(f, ast.FunctionDef)}
        calls = {
            name: [call for call in ast.walk(f) if isinstance(call, ast.Call)]
            for name, f in functions.items()
        }
        launches = {
            name
            for name, made in calls.items()
            if any(is_launch({keyword.arg for keyword in call.keywords}) for call in made)
        }
        more = True
        while more:
            private = {name for name in launches if name.startswith("_")}
            reached = {
                name
                for name, made in calls.items()
                if any(isinstance(call.func, ast.Name) and call.func.id in private for call in made)
            }
            more = not reached <= launches
            launches |= reached
        module = ".".join(file.relative_to(examples_dir()).with_suffix("").parts)
        found |= {f"{module}.{name}" for name in launches if not name.startswith("_")}
    return found


def test_the_table_has_all_launchers():
    found = public_launchers()
    assert set(NOT_OF_OTHERS) <= found
    assert found - set(NOT_OF_OTHERS) <= {case.launcher for case in FULL.values()}


@pytest.mark.parametrize("name", FULL)
def test_a_good_call_is_launched_and_none_without_rows(name, counters):
    handled(FULL[name], told(FULL[name]), FULL[name].kernels)
    if EMPTY[name].empty is None:
        refused(EMPTY[name], told(EMPTY[name]), NO_LAUNCH, "no rows")
    else:
        handled(EMPTY[name], told(EMPTY[name]), EMPTY[name].empty)


@pytest.mark.parametrize("rows", [ROWS, 0])
@pytest.mark.parametrize("name", FULL)
def test_what_is_no_such_array_is_refused(name, rows):
    """Host arrays, numbers, nothing; other types of the same size, and of another."""
    case = (FULL if rows else EMPTY)[name]
    for which, spec in case.arrays.items():
        good = told(case)
        for wrong in (np.zeros(spec.shape, spec.dtype), 5, [1.0]):
            refused(case, good | {which: wrong}, TypeError, f"{which} = {wrong!r}")
        if not spec.optional:
            refused(case, good | {which: None}, REFUSED, f"no {which}")
        for dtype in (
            "float16",
            "uint16",
            "int32",
            "uint32",
            "float32",
            "float64",
            "int64",
            "uint8",
            "int8",
        ):
            if dtype not in (spec.dtype, *spec.kinds):
                wrong = Told(dtype, *spec.shape)
                refused(case, good | {which: wrong}, REFUSED, f"{which} of {dtype}")


@pytest.mark.parametrize("rows", [ROWS, 0])
@pytest.mark.parametrize("name", FULL)
def test_other_shapes_are_refused(name, rows):
    case = (FULL if rows else EMPTY)[name]
    for which, spec in case.arrays.items():
        shapes = []
        for axis, extent in enumerate(spec.shape):
            others = (
                [extent - 1] if None in spec.free else [extent - 1, extent + 1]
            )  # a workspace may be larger
            if axis in spec.free:
                others = []
            shapes += [
                (*spec.shape[:axis], other, *spec.shape[axis + 1 :])
                for other in others
                if other >= 0
            ]
        if None not in spec.free:
            shapes += [(1, *spec.shape), spec.shape[1:], ()]
        for shape in shapes:
            refused(
                case,
                told(case) | {which: Told(spec.dtype, *shape)},
                ValueError,
                f"{which} of {shape}",
            )


@pytest.mark.parametrize("name", FULL)
def test_views_are_handled_or_refused(name, counters):
    """Elements that lie apart always refused; rows that lie apart handled where the table says so."""
    case = FULL[name]
    for which, spec in case.arrays.items():
        good = told(case)
        wide = tuple(2 * step for step in strides_of(good[which]))
        apart = Told(spec.dtype, *spec.shape, strides=wide)
        if int(np.prod(spec.shape)) > 1:
            refused(case, good | {which: apart}, ValueError, f"elements of {which} apart")
        together = [
            which,
            *(other for pair in case.apart for other in pair if which in pair and other != which),
        ]
        for leading in range(1, len(spec.shape)):
            if min(spec.shape[:leading]) * int(np.prod(spec.shape[:leading])) < 2:
                continue
            views = {one: with_rows_apart(good[one], leading) for one in together}
            if leading == spec.rows:
                handled(case, good | views, case.kernels)
                if spec.align > 1:
                    off = {
                        one: with_rows_apart(good[one], leading, spec.align // 2)
                        for one in together
                    }
                    refused(case, good | off, ValueError, f"rows of {which} between multiples")
            else:
                refused(case, good | views, ValueError, f"rows of {which} apart")
        if spec.written and spec.rows:
            inside = with_rows_apart(good[which], spec.rows, -good[which].dtype.itemsize * 8)
            refused(case, good | {which: inside}, ValueError, f"rows of {which} in one another")


@pytest.mark.parametrize("name", FULL)
def test_addresses_between_two_multiples_are_refused(name, counters):
    case = FULL[name]
    for which, spec in case.arrays.items():
        good = told(case)
        array, size = good[which], good[which].dtype.itemsize
        align = max(spec.align, size)
        for shift in {align // 2, size // 2} - {0}:
            off = Told(spec.dtype, *spec.shape, at=array.address + shift)
            refused(case, good | {which: off}, ValueError, f"{which} {shift} bytes further on")
        handled(
            case,
            good | {which: Told(spec.dtype, *spec.shape, at=array.address + align)},
            case.kernels,
        )


@pytest.mark.parametrize("name", FULL)
def test_what_is_written_is_none_of_the_others(name, counters):
    """The same array twice, and one that begins with the last element of the other."""
    case = FULL[name]
    pairs = [
        (written, other)
        for written, spec in case.arrays.items()
        for other in case.arrays
        if spec.written and other != written
    ]
    for written, other in pairs:
        good = told(case)
        (one, spec), of_other = (good[written], case.arrays[written]), case.arrays[other]
        same = Told(of_other.dtype, *of_other.shape, at=one.address)
        may_be = (written, other) in case.over and of_other[:2] == spec[:2]
        if may_be:
            handled(case, good | {other: one}, case.kernels)
        else:
            refused(case, good | {other: same}, ValueError, f"{other} is {written}")
        step = max(of_other.align, spec.align, 16)
        last = one.address + (one.nbytes - 1) // step * step
        behind = Told(of_other.dtype, *of_other.shape, at=last)
        refused(case, good | {other: behind}, ValueError, f"{other} begins in {written}")
        beyond = Told(of_other.dtype, *of_other.shape, at=last + step)
        handled(case, good | {other: beyond}, case.kernels)


@pytest.mark.parametrize("name", FULL)
@pytest.mark.parametrize("rows", [(1 << 31) - 1, (1 << 31) - 600, 1 << 31, 1 << 33])
def test_so_many_rows_are_launched_within_limits_or_refused(name, rows, counters):
    case = cases(rows)[name]
    Kernel.launched.clear()
    try:
        case.launch(told(case))
    except NO_LAUNCH:
        assert not Kernel.launched
    else:
        assert rows <= case.most and len(Kernel.launched) >= case.kernels


# Heads that each of these does not have a kernel for.
HEADS = {
    20: ("rope_and_store", "decode", "flash_parts", "flash_hopper_paged", "flash_hopper.attention", "flash.paged, uint8"),
    63: ("linear_qkv", "norm_qkv", "rope_and_store", "decode", "flash_parts", "flash_hopper"),
    320: ("decode", "flash"),
}  # fmt: skip


@pytest.mark.parametrize("d", HEADS)
def test_heads_without_a_kernel_are_refused(d):
    found = llm_launchers.cases(
        ROWS, min(d, 256)
    )  # what asks flash.py for a tile refuses wider ones
    assert all(any(name.startswith(which) for name in found) for which in HEADS[d])
    for name, case in found.items():
        if name.startswith(HEADS[d]):
            arrays = told(case)
            if d > 256:
                arrays = {
                    which: Told(
                        array.dtype.name,
                        *(d if extent == 256 else extent for extent in array.shape),
                    )
                    for which, array in arrays.items()
                }
            refused(case, arrays, ValueError, f"heads of {d}")


MANY = 1 << 31
NUMBERS = {
    "copy_blocks, uint16": ({"block_size": 0}, {"block_size": 5}, {"block_size": -16}),
    "softmax, fused": ({"scale": 0.0}, {"scale": float("inf")}, {"scale": float("nan")}, {"queries": -1}, {"by": "best"}),
    "sample": ({"vocab": 0}, {"vocab": 71}, {"parts": 0}, {"parts": -1}, {"parts": MANY}),
    "linear, {}": ({"split": 0}, {"split": 9}, {"add": True, "swiglu": True}),
    "gated": ({"squares": 0}, {"squares": -1}, {"squares": 1}),
    "decode.paged, uint16": (
        {"block_size": 0}, {"split": 0}, {"longest": -1}, {"window": -1}, {"softcap": -1.0}, {"warps": 5},
        {"softcap": float("nan")}, {"longest": MANY - 1}, {"split": MANY - 1}, {"longest": 70_000, "split": 1},
    ),
    "decode.contiguous, uint16": ({"longest": 49},),
    "flash.contiguous": ({"scale": 0.0}, {"scale": -1.0}, {"softcap": -1.0}, {"window": -1}),
    "flash.paged, uint16": ({"scale": float("nan")}, {"block_size": 0}, {"softcap": float("nan")}),
    "flash_parts.paged, uint16": ({"scale": 0.0}, {"block_size": 0}, {"parts": 0}, {"parts": 3}, {"parts": MANY}),
    "flash_hopper_paged.paged": ({"scale": 0.0}, {"block_size": 0}, {"block_size": 24}, {"block_size": 32}, {"block_size": 4}),
    "flash_hopper.attention": ({"scale": 0.0}, {"together": 0}, {"causal": True}),
    "fill, words": ({"seed": -1}, {"seed": 1 << 64}, {"stream": 1 << 64}, {"each": 0}, {"each": 3}, {"block": 96}),
}  # fmt: skip


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_that_do_not_fit_are_refused(name):
    for numbers in NUMBERS[name]:
        refused(FULL[name], told(FULL[name]), ValueError, str(numbers), **numbers)


def test_more_rows_than_a_kernel_takes():
    for name in ("norm_qkv, uint16", "norm_gate_up"):
        refused(cases(9)[name], told(cases(9)[name]), ValueError, "9 rows")


def test_extents_that_a_kernel_does_not_count_are_refused():
    """Beside the rows: columns, outputs, layers, blocks, strides, tiles."""

    def changed(name, **shapes):
        case = FULL[name]
        arrays = told(case) | {
            which: Told(case.arrays[which].dtype, *shape) for which, shape in shapes.items()
        }
        return case, arrays

    long, most = (1 << 30) + 8, MANY - 1
    for case, arrays in (
        changed("embed, bf16", x=(3, long), embedding=(50, long)),
        changed("gather", x=(5, long), out=(3, long)),
        changed("softmax, fused", x=(3, 32769), out=(3, 32769)),
        changed("softmax, shared", x=(3, 100_000), out=(3, 100_000)),
        changed("softmax, cluster", x=(3, 262145), out=(3, 262145)),
        changed("softmax, online", x=(3, long), out=(3, long)),
        changed("rms_norm", x=(3, 32769), weight=(32769,), out=(3, 32769)),
        changed("gemv, uint16, add=False", x=(3, long), weights=(40, long)),
        changed("gemv, uint16, add=False", weights=(most, 64), out=(3, most)),
        changed("linear, {}", weights=(most, 64), out=(3, most)),
        changed("linear, {}", x=(3, most - 7), weights=(41, most - 7)),
        changed("stored", x=(1 << 24, 64), weights=(1 << 24, 64), y=(1 << 24, 1 << 24)),
        changed("added", weights=(47, 64), **{"y": (3, 47), "norm.weight": (47,), "norm.h": (3, 47)}),
        changed("gated", weights=(40, 64), out=(3, 20)),
        changed("copy_blocks, uint16", keys=(70_000, 48, 2, 64), values=(70_000, 48, 2, 64)),
        changed("copy_blocks, uint16", keys=(48, 2, 1), values=(48, 2, 1)),
        changed("copy_blocks, uint16", keys=(16, 1 << 15, 1 << 20), values=(16, 1 << 15, 1 << 20)),
        changed("flash.contiguous", q=(3, long, 4, 64), out=(3, long, 4, 64), lse=(3, long, 4)),
        changed("sample", logits=(3, 1 << 24)),
        changed("stored", x=(3, 60), weights=(48, 60)),
        changed("decode.paged, uint16", keys=(48, 3, 64), values=(48, 3, 64)),
        changed("decode.contiguous, uint16", keys=(3, 48, 3, 64), values=(3, 48, 3, 64)),
        changed("flash.contiguous", keys=(3, 9, 3, 64), values=(3, 9, 3, 64)),
        changed("flash_parts.paged, uint16", keys=(48, 0, 64), values=(48, 0, 64)),
        changed("linear_qkv, uint16", x=(3, 60), weights=(512, 60)),
        changed("flash.contiguous", keys=(2, 9, 2, 64), values=(2, 9, 2, 64)),
        changed("flash_hopper.attention", keys=(2, 9, 2, 64), values=(2, 9, 2, 64)),
        changed("product", b=(3, 40, 64)),
        changed("product", a=(70_000, 3, 64), out=(70_000, 3, 40), b=(2, 40, 64)),
    ):  # fmt: skip
        numbers = {"vocab": None} if case.launcher == "llm.kernels.sampling.sample" else {}
        numbers |= (
            {"block_size": 2} if min(arrays.get("keys", Told("uint8", 9)).shape[-1:]) == 1 else {}
        )
        refused(
            case,
            arrays,
            ValueError,
            str({name: array.shape for name, array in arrays.items()}),
            **numbers,
        )


def test_rows_further_apart_than_an_int_says_are_refused():
    for name, case in FULL.items():
        if name.startswith("flash"):
            arrays = told(case)
            arrays["q"] = with_rows_apart(arrays["q"], case.arrays["q"].rows, 1 << 33)
            refused(case, arrays, ValueError, "rows of q far apart")


def test_rows_that_lie_in_one_another_are_read_but_by_no_tensor_map():
    for name, which, kernels in (
        ("flash.paged, uint16", "q", 1), ("swiglu", "gate_up", 1), ("stored", "x", 0), ("added", "weights", 0),
        ("flash_hopper.attention", "q", 0), ("flash_hopper_paged.paged", "q", 0),
    ):  # fmt: skip
        case = FULL[name]
        arrays = told(case)
        arrays[which] = with_rows_apart(arrays[which], case.arrays[which].rows, -64)
        if kernels:
            handled(case, arrays, kernels)
        else:
            refused(case, arrays, ValueError, f"rows of {which} in one another")


def test_wide_loads_only_where_all_rows_begin_at_multiples_of_them():
    for name, wide, narrow in (
        ("swiglu", "swiglu<8,", "swiglu<1,"), ("rms_norm", "rms_norm<__nv_bfloat16,float,8,", "rms_norm<__nv_bfloat16,float,1,"),
        ("softmax, online", "softmax_online<float,float,4,", "softmax_online<float,float,1,"),
    ):  # fmt: skip
        case, good = FULL[name], told(FULL[name])
        handled(case, good, 1)
        assert Kernel.launched[0].startswith(wide)
        for which, spec in case.arrays.items():
            if spec.rows:
                for off in (
                    with_rows_apart(good[which], 1, good[which].dtype.itemsize),
                    Told(
                        spec.dtype, *spec.shape, at=good[which].address + good[which].dtype.itemsize
                    ),
                ):
                    handled(case, good | {which: off}, 1)
                    assert Kernel.launched[0].startswith(narrow), (name, which)


def test_rows_of_logits_that_end_within_four_numbers_are_read_one_by_one():
    """Nothing is read behind an array's last element."""
    for columns, vocab, kernel in (
        (70, 64, "4"),
        (70, 70, "1"),
        (72, 70, "4"),
        (64, 64, "4"),
        (66, 66, "1"),
    ):
        case = cases(1)["sample"]
        handled(case, told(case) | {"logits": Told("float32", 1, columns)}, 1, vocab=vocab)
        assert Kernel.launched[0].endswith(f",{kernel}>"), (columns, vocab)
