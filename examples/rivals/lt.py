"""The fastest of what cublasLt's heuristics offer for products of other types than fp32.

    run = lt.fastest(a, b, c, "bf16")                       # C = A B
    run = lt.fastest(a, b, c, "tf32", transpose_b=True)     # C = A B^T
    run = lt.fastest(a, b, c, "e4m3", True, scales=(sa, sb))

rivals/cublaslt.py does the same for fp32; the library and its records are those.
"""

import ctypes
import random
from collections.abc import Callable
from statistics import median
from typing import Any, NamedTuple

import cudatut as ct

from cudatut.book.rivals import cublaslt as LT

# cudaDataType_t and cublasComputeType_t.
REAL_32F, REAL_16F, REAL_16BF, REAL_E4M3 = 0, 2, 14, 28
COMPUTE_32F, COMPUTE_32F_FAST_TF32 = 68, 77
OUT = {"float32": REAL_32F, "float16": REAL_16F, "uint16": REAL_16BF}
# cublasLtMatmulDescAttributes_t.
TRANSPOSE_A, TRANSPOSE_B, SCALE_A, SCALE_B, FAST_SUMS = 3, 4, 17, 18, 25


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


def offers(
    a: Any,
    b: Any,
    c: Any,
    kind: str,
    transpose_b: bool = False,
    scales: tuple[Any, Any] | None = None,
    fast: bool = False,
) -> list[Callable[[], None]]:
    """A callable for each algorithm that the heuristics offer for C = A op(B); empty without the library.

    scales: one float32 of A and of B, on the GPU, for e4m3, which wants transpose_b. fast: e4m3 with sums of fewer bits.
    Raises LT.Refused where the library refuses the product, TypeError, ValueError for arrays that do not fit it; they begin
    at multiples of 16 bytes, as the heuristics assume.
    """
    take, dtype = ct.operands("cublasLt"), KINDS[kind].dtype
    m, k = take.read("A", a, dtype, (None, None), align=16).shape
    shape = (None, k) if transpose_b else (k, None)
    n = take.read("B", b, dtype, shape, align=16).shape[0 if transpose_b else 1]
    take.write("C", c, tuple(OUT), (m, n), align=16)
    for name, scale in zip(("A", "B"), scales or ()):
        take.read(f"scale of {name}", scale, "float32", (1,))
    cp = ct.vendor.cupy()
    if cp is None:
        return []
    cp.cuda.get_cublas_handle()  # loads the libraries
    library = LT.library()
    if not library:
        return []
    call, how = LT.call, KINDS[kind]
    handle, workspace = LT._once(library)
    product, preference = ctypes.c_void_p(), ctypes.c_void_p()
    call(
        library.cublasLtMatmulDescCreate, ctypes.byref(product), how.compute,
        REAL_32F,
    )  # fmt: skip

    def describe(attribute: int, value: Any) -> None:
        call(
            library.cublasLtMatmulDescSetAttribute, product, attribute,
            ctypes.byref(value), ctypes.c_size_t(ctypes.sizeof(value)),
        )  # fmt: skip

    # cuBLAS counts down columns: to it our matrices are their transposes, and
    # C^T = op(B)^T A^T. Its first factor is our second.
    describe(TRANSPOSE_A, ctypes.c_int(int(transpose_b)))
    describe(TRANSPOSE_B, ctypes.c_int(0))
    if scales:
        for attribute, scale in ((SCALE_A, scales[1]), (SCALE_B, scales[0])):
            describe(attribute, ctypes.c_void_p(_address(scale)))
        describe(FAST_SUMS, ctypes.c_int8(int(fast)))

    def layout(matrix: Any, kind: int) -> ctypes.c_void_p:
        rows, columns = matrix.shape
        made = ctypes.c_void_p()
        call(
            library.cublasLtMatrixLayoutCreate, ctypes.byref(made), kind,
            ctypes.c_uint64(columns), ctypes.c_uint64(rows),
            ctypes.c_int64(columns),
        )  # fmt: skip
        return made

    left, right = layout(b, how.factors), layout(a, how.factors)
    out = layout(c, OUT[str(c.dtype)])
    call(library.cublasLtMatmulPreferenceCreate, ctypes.byref(preference))
    call(
        library.cublasLtMatmulPreferenceSetAttribute, preference, 1,
        ctypes.byref(ctypes.c_uint64(LT.WORKSPACE)), ctypes.c_size_t(8),
    )  # fmt: skip
    found, count = (LT.Offer * LT.OFFERS)(), ctypes.c_int()
    call(
        library.cublasLtMatmulAlgoGetHeuristic,
        handle, product, left, right, out, out, preference, LT.OFFERS, found,
        ctypes.byref(count),
    )  # fmt: skip
    one, zero = ctypes.c_float(1.0), ctypes.c_float(0.0)
    pointers = [ctypes.c_void_p(_address(x)) for x in (b, a, c, workspace)]

    def prepared(offer: Any) -> Callable[[], None]:
        arguments = (
            handle, product, ctypes.byref(one), pointers[0], left, pointers[1],
            right, ctypes.byref(zero), pointers[2], out, pointers[2], out,
            ctypes.byref(offer.algorithm), pointers[3],
            ctypes.c_size_t(LT.WORKSPACE), ctypes.c_void_p(0),
        )  # fmt: skip

        def run() -> None:
            call(library.cublasLtMatmul, *arguments)

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
    except LT.Refused:
        return None
    for number, run in enumerate(offered):
        try:
            run()
        except LT.Refused:
            continue
        runs[number] = run
    if not runs:
        return None
    times = ct.take_turns(runs, rounds, random.Random(0))
    best = min(runs, key=lambda number: median(times[number]))
    found = ct.vendor.Vendor(runs[best])
    found.offers, found.number = len(runs), best
    return found


def _address(array: Any) -> int:
    return array.__cuda_array_interface__["data"][0]
