"""cuBLAS's second interface, cublasLt: all algorithms that its heuristics offer for a product, and the fastest of them.

    run = cublaslt.fastest(a, b, c)                                 # C = A B in fp32
    run = cublaslt.fastest(a, b, c, "tf32", transpose_b=True)       # C = A B^T
    run = cublaslt.fastest(a, b, c, "e4m3", transpose_b=True, scales=(sa, sb))

cuBLAS's first interface takes the first algorithm that its heuristics name; who calls cublasLt can time several. The
library is the one that CuPy has loaded; ctypes calls it.
"""

import ctypes
import random
from collections.abc import Callable
from statistics import median
from typing import Any, NamedTuple

import cudatut as ct
from cudatut.book.rivals.cublas_types import (
    COMPUTE_32F,
    COMPUTE_32F_FAST_TF32,
    REAL_16BF,
    REAL_16F,
    REAL_32F,
    REAL_E4M3,
    started,
)
from cudatut.book.rivals.libraries import loaded, pointer

OFFERS = 16  # asked for
WORKSPACE = 32 << 20  # bytes
OUT = {"float32": REAL_32F, "float16": REAL_16F, "uint16": REAL_16BF}
# cublasLtMatmulDescAttributes_t, and of cublasLtMatmulPreferenceAttributes_t the workspace.
TRANSPOSE_A, TRANSPOSE_B, SCALE_A, SCALE_B, FAST_SUMS = 3, 4, 17, 18, 25
MOST_WORKSPACE = 1


class Kind(NamedTuple):
    """How factors of a type are stored, and what they are multiplied by."""

    dtype: str
    factors: int
    compute: int


KINDS = {
    "fp32": Kind("float32", REAL_32F, COMPUTE_32F),
    "tf32": Kind("float32", REAL_32F, COMPUTE_32F_FAST_TF32),
    "fp16": Kind("float16", REAL_16F, COMPUTE_32F),
    "bf16": Kind("uint16", REAL_16BF, COMPUTE_32F),
    "e4m3": Kind("uint8", REAL_E4M3, COMPUTE_32F),
}


class Offer(ctypes.Structure):
    """cublasLtMatmulHeuristicResult_t."""

    _fields_ = (
        ("algorithm", ctypes.c_uint64 * 8),
        ("workspace", ctypes.c_size_t),
        ("state", ctypes.c_int),
        ("waves", ctypes.c_float),
        ("reserved", ctypes.c_int * 4),
    )


class Refused(Exception):
    """cublasLt returned an error."""


def offers(
    a: Any,
    b: Any,
    c: Any,
    kind: str = "fp32",
    *,
    transpose_a: bool = False,
    transpose_b: bool = False,
    scales: tuple[Any, Any] | None = None,
    fast: bool = False,
) -> list[Callable[[], None]]:
    """A callable for each algorithm that the heuristics offer for C = op(A) op(B); empty without the library.

    scales: one float32 of A and of B, on the GPU, for e4m3, which wants transpose_b. fast: e4m3 with sums of fewer bits.
    Raises Refused where the library refuses the product, TypeError, ValueError for arrays that do not fit it; they begin at
    multiples of 16 bytes, as the heuristics assume.
    """
    take, how = ct.operands("cublasLt"), KINDS[kind]
    shape = take.read("A", a, how.dtype, (None, None), align=16).shape
    m, k = shape[::-1] if transpose_a else shape
    shape = (None, k) if transpose_b else (k, None)
    n = take.read("B", b, how.dtype, shape, align=16).shape[
        0 if transpose_b else 1
    ]
    take.write("C", c, tuple(OUT), (m, n), align=16)
    for name, scale in zip(("A", "B"), scales or ()):
        take.read(f"scale of {name}", scale, "float32", (1,))
    # CuPy loads the library.
    if not started() or not (library := loaded("libcublasLt")):
        return []
    handle, workspace = _once(library)
    product, preference = ctypes.c_void_p(), ctypes.c_void_p()
    _call(
        library.cublasLtMatmulDescCreate, ctypes.byref(product), how.compute,
        REAL_32F,
    )  # fmt: skip

    def describe(attribute: int, value: Any) -> None:
        _call(
            library.cublasLtMatmulDescSetAttribute, product, attribute,
            ctypes.byref(value), ctypes.c_size_t(ctypes.sizeof(value)),
        )  # fmt: skip

    # cuBLAS counts down columns: to it our matrices are their transposes, and
    # C^T = op(B)^T op(A)^T. Its first factor is our second.
    describe(TRANSPOSE_A, ctypes.c_int(int(transpose_b)))
    describe(TRANSPOSE_B, ctypes.c_int(int(transpose_a)))
    if scales:
        for attribute, scale in ((SCALE_A, scales[1]), (SCALE_B, scales[0])):
            describe(attribute, pointer(scale))
        describe(FAST_SUMS, ctypes.c_int8(int(fast)))

    def layout(matrix: Any, kind: int) -> ctypes.c_void_p:
        rows, columns = matrix.shape
        made = ctypes.c_void_p()
        _call(
            library.cublasLtMatrixLayoutCreate, ctypes.byref(made), kind,
            ctypes.c_uint64(columns), ctypes.c_uint64(rows),
            ctypes.c_int64(columns),
        )  # fmt: skip
        return made

    left, right = layout(b, how.factors), layout(a, how.factors)
    out = layout(c, OUT[str(c.dtype)])
    _call(library.cublasLtMatmulPreferenceCreate, ctypes.byref(preference))
    _call(
        library.cublasLtMatmulPreferenceSetAttribute, preference,
        MOST_WORKSPACE, ctypes.byref(ctypes.c_uint64(WORKSPACE)),
        ctypes.c_size_t(8),
    )  # fmt: skip
    found, count = (Offer * OFFERS)(), ctypes.c_int()
    _call(
        library.cublasLtMatmulAlgoGetHeuristic,
        handle, product, left, right, out, out, preference, OFFERS, found,
        ctypes.byref(count),
    )  # fmt: skip
    one, zero = ctypes.c_float(1.0), ctypes.c_float(0.0)
    pointers = [pointer(x) for x in (b, a, c, workspace)]

    def prepared(offer: Offer) -> Callable[[], None]:
        arguments = (
            handle, product, ctypes.byref(one), pointers[0], left, pointers[1],
            right, ctypes.byref(zero), pointers[2], out, pointers[2], out,
            ctypes.byref(offer.algorithm), pointers[3],
            ctypes.c_size_t(WORKSPACE), ctypes.c_void_p(0),
        )  # fmt: skip

        def run() -> None:
            _call(library.cublasLtMatmul, *arguments)

        run.kept = a, b, c, scales, found, one, zero  # it sees only addresses
        return run

    return [prepared(found[i]) for i in range(count.value)]


def fastest(*product: Any, rounds: int = 3, **options: Any) -> Any:
    """The fastest of the offers in a short race, as a contestant of the vendor's; None where there is none, or where the
    library refuses the product.

    The arguments are those of `offers`; rounds: of the race.
    """
    if ct.tool.running():
        return None
    runs = {}
    try:
        offered = offers(*product, **options)
    except Refused:
        return None
    for number, run in enumerate(offered):
        try:
            run()
        except Refused:
            continue
        runs[number] = run
    if not runs:
        return None
    times = ct.take_turns(runs, rounds, random.Random(0))
    best = min(runs, key=lambda number: median(times[number]))
    return ct.vendor.Vendor(runs[best])


_kept: list[Any] = []


def _once(library: ctypes.CDLL) -> tuple[Any, Any]:
    """A handle and a workspace for this process."""
    if not _kept:
        handle = ctypes.c_void_p()
        _call(library.cublasLtCreate, ctypes.byref(handle))
        _kept.extend((handle, ct.empty(WORKSPACE, "uint8")))
    return _kept[0], _kept[1]


def _call(function: Any, *arguments: Any) -> None:
    if status := function(*arguments):
        raise Refused(f"{function.__name__}: status {status}")
