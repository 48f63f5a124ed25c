"""cuBLAS's second interface, cublasLt: all algorithms that its heuristics offer for a product, and the fastest of them.

    run = cublaslt.fastest(a, b, c)

cublasSgemm takes the first that its heuristics name; who calls cublasLt can time several. The library is the one that
CuPy has loaded; ctypes calls it.
"""

import ctypes
import random
from collections.abc import Callable
from statistics import median
from typing import Any

import cudatut as ct

OFFERS = 16  # asked for
WORKSPACE = 32 << 20  # bytes
COMPUTE_32F, REAL_32F = 68, 0  # cublasComputeType_t, cudaDataType_t


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


def library() -> ctypes.CDLL | None:
    """libcublasLt as CuPy's cuBLAS has loaded it; None where that cannot be told (Linux says it)."""
    try:
        with open("/proc/self/maps") as maps:
            path = next(
                line.split()[-1] for line in maps if "libcublasLt.so" in line
            )
    except (OSError, StopIteration):
        return None
    return ctypes.CDLL(path)


def call(function: Any, *arguments: Any) -> None:
    if status := function(*arguments):
        raise Refused(f"{function.__name__}: status {status}")


def offers(
    a: Any, b: Any, c: Any, transpose_a: bool = False, transpose_b: bool = False
) -> list[Callable[[], None]]:
    """A callable for each algorithm that the heuristics offer for C = op(A) op(B), in fp32; empty without the library."""
    reference = ct.vendor.gemm(a, b, c, 1.0, 0.0, transpose_a, transpose_b)
    if not reference or not (lt := library()):  # CuPy has loaded it by now
        return []
    m, k = a.shape[::-1] if transpose_a else a.shape
    n = b.shape[0] if transpose_b else b.shape[1]
    handle, workspace = _once(lt)
    product, preference = ctypes.c_void_p(), ctypes.c_void_p()
    call(
        lt.cublasLtMatmulDescCreate,
        ctypes.byref(product),
        COMPUTE_32F,
        REAL_32F,
    )
    # cuBLAS counts down columns: to it our matrices are their transposes, and
    # C^T = op(B)^T op(A)^T.
    for attribute, flag in ((3, transpose_b), (4, transpose_a)):
        call(
            lt.cublasLtMatmulDescSetAttribute,
            product,
            attribute,
            ctypes.byref(ctypes.c_int(int(flag))),
            ctypes.c_size_t(4),
        )

    def layout(matrix: Any) -> ctypes.c_void_p:
        rows, columns = matrix.shape
        made = ctypes.c_void_p()
        call(
            lt.cublasLtMatrixLayoutCreate,
            ctypes.byref(made),
            REAL_32F,
            ctypes.c_uint64(columns),
            ctypes.c_uint64(rows),
            ctypes.c_int64(columns),
        )
        return made

    left, right, out = layout(b), layout(a), layout(c)
    call(lt.cublasLtMatmulPreferenceCreate, ctypes.byref(preference))
    call(
        lt.cublasLtMatmulPreferenceSetAttribute,
        preference,
        1,
        ctypes.byref(ctypes.c_uint64(WORKSPACE)),
        ctypes.c_size_t(8),
    )
    found, count = (Offer * OFFERS)(), ctypes.c_int()
    call(
        lt.cublasLtMatmulAlgoGetHeuristic,
        handle, product, left, right, out, out, preference, OFFERS, found,
        ctypes.byref(count),
    )  # fmt: skip
    one, zero = ctypes.c_float(1.0), ctypes.c_float(0.0)
    pointers = [
        ctypes.c_void_p(x.__cuda_array_interface__["data"][0])
        for x in (b, a, c, workspace)
    ]

    def prepared(offer: Offer) -> Callable[[], None]:
        arguments = (
            handle, product, ctypes.byref(one), pointers[0], left, pointers[1],
            right, ctypes.byref(zero), pointers[2], out, pointers[2], out,
            ctypes.byref(offer.algorithm), pointers[3],
            ctypes.c_size_t(WORKSPACE), ctypes.c_void_p(0),
        )  # fmt: skip

        def run() -> None:
            call(lt.cublasLtMatmul, *arguments)

        run.kept = a, b, c, found, m, n, k  # it sees only addresses
        return run

    return [prepared(found[i]) for i in range(count.value)]


_kept: list[Any] = []


def _once(lt: ctypes.CDLL) -> tuple[Any, Any]:
    """A handle and a workspace for this process."""
    if not _kept:
        handle = ctypes.c_void_p()
        call(lt.cublasLtCreate, ctypes.byref(handle))
        _kept.extend((handle, ct.empty(WORKSPACE, "uint8")))
    return _kept[0], _kept[1]


def fastest(
    a: Any,
    b: Any,
    c: Any,
    transpose_a: bool = False,
    transpose_b: bool = False,
    rounds: int = 3,
) -> Any:
    """The fastest of the offers in a short race, as a contestant of the vendor's; None where there is none."""
    if ct.tool.running():
        return None
    runs = {}
    for number, run in enumerate(offers(a, b, c, transpose_a, transpose_b)):
        try:
            run()
        except Refused:
            continue
        runs[number] = run
    if not runs:
        return None
    times = ct.take_turns(runs, rounds, random.Random(0))
    best = min(runs, key=lambda number: median(times[number]))
    found = ct.vendor.Vendor(runs[best])
    found.offers, found.number = len(runs), best
    return found
