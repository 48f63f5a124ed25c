"""The ladder of products on tensor cores: every rung of this part, and how any of them is launched, checked and compared.

C = A B with bf16 factors, sums in fp32 and a bf16 result; A is m x k, B is k x n, C is m x n, all row-major, as in the
ladder of the part gemm. Its `@rung` line says how a rung is launched:

    block=256        threads of a block
    tile=256x128     columns x rows of C that a block computes
    stage=49152      bytes of dynamic shared memory for each stage; how many these are is the template's first number
    box_a=128x64     A and B come as tensor maps, with boxes of this size for A and 64 x 64 for B
    cluster=2        as many blocks as the GPU runs at a time, in clusters of so many; else a block for each tile
    boxes=4          C is a tensor map, too, with boxes of 64 x 64, so many of them in shared memory
    multiples=1x8x8  m, n and k have to be multiples of these; where it is left out, of these. An extent may be 0 only
                     where it may be any
    launch=gemm      nothing of the above: `prepare(a, b, c)` of the module of this name plans the launch. Its kernel, the
                     file that the module calls SOURCE, takes any m, n and k

A kernel without maps takes (A, B, C, m, n, k).
"""

import importlib
from collections.abc import Callable
from functools import cached_property, lru_cache

import numpy as np

import cudatut as ct
from cudatut.book.measure.some_rows import some_rows
from cudatut.book.numbers.bf16 import to_bf16, to_float
from cudatut.book.rivals import torch_rival

BOX = 64 * 64 * 2  # bytes


class Gemm:
    """C = A B with random elements: in [-1, 1) as bf16, or (integers=True) whole numbers from -4 to 4.

    With integers every partial sum is exact in fp32 (for k <= 2^19), and only the last rounding to bf16 is left: the check
    then allows no error at all. Otherwise it allows that rounding, and what sums in fp32 may miss.
    """

    def __init__(
        self,
        m: int = 1024,
        n: int = 1024,
        k: int = 1024,
        seed: int = 0,
        integers: bool = False,
    ):
        self.m, self.n, self.k, self.integers = m, n, k, integers
        self.host_a, self.host_b = random_factors(m, n, k, seed, integers)
        self.a, self.b = ct.to_device(self.host_a), ct.to_device(self.host_b)
        self.c = ct.empty((m, n), "uint16")
        self.bytes, self.flops = None, 2 * m * n * k

    @cached_property
    def rows(self) -> np.ndarray:
        """Rows of C that are compared."""
        return some_rows(self.m, self.n, self.k)

    @cached_property
    def reference(self) -> tuple[np.ndarray, float]:
        """Those rows of A B in float64, and what sums in fp32 may miss of any of their elements."""
        a = to_float(self.host_a[self.rows]).astype("float64")
        b = to_float(self.host_b).astype("float64")
        bound = 0.0
        if not self.integers and a.size:
            bound = error_bound(self.k) * float((abs(a) @ abs(b)).max())
        return a @ b, bound

    def launcher(self, rung: ct.Rung) -> Callable[[], object] | None:
        """A callable that multiplies once; `.out` is C. None, after a note, where this GPU lacks what the rung needs.

        Raises ct.RungError for a shape that the rung does not take.
        """
        requires = rung.options.get("requires", "sm_80")
        if not ct.supports(ct.device().compute_capability, requires):
            ct.show(
                f"no row for {rung.name}: it needs {requires}, but this is {ct.device().arch}"
            )
            return None
        if name := rung.options.get("launch"):
            return planner(rung, name)(self.a, self.b, self.c)
        if why := refuses(rung, self.m, self.n, self.k):
            raise ct.RungError(why)
        if not self.c.size:
            return lambda: None
        return launcher(rung, self.a, self.b, self.c)

    def check(self, rung: ct.Rung) -> None:
        """Multiply once into poisoned memory and compare with the reference; raises CheckError.

        On a GPU that lacks what the rung needs: UnsupportedGpuError.
        """
        ct.require(rung.options.get("requires", "sm_80"))
        ct.poison(self.c)
        self.launcher(rung)()
        kind = ", integers" if self.integers else ""
        self.compare(f"{rung.name}, {self.m} x {self.n} x {self.k}{kind}")

    def compare(self, name: str) -> None:
        """Compare C, whoever wrote it, with the reference; raises CheckError. bf16 has 8 significant bits."""
        expected, bound = self.reference
        got = to_float(self.c.get()[self.rows])
        if self.integers:
            ct.check(got, to_float(to_bf16(expected)), name=name)
        else:
            ct.check(got, expected, name=name, rtol=2.0**-8, atol=bound)

    def vendors(self) -> dict[str, Callable[[], object] | None]:
        """cuBLAS through PyTorch, on the same arrays."""
        return {"cuBLAS": cublas(self.a, self.b, self.c)}


def planner(rung: ct.Rung, name: str) -> Callable[..., object]:
    """`prepare` of tensor/gemm/<name>.py. It is loaded only here, so that no other rung depends on it.

    Raises ct.RungError where there is no such module, or it launches another file than this.
    """
    try:
        module = importlib.import_module(f"cudatut.book.tensor.gemm.{name}")
    except ModuleNotFoundError as error:
        if not str(error.name).endswith(
            f".gemm.{name}"
        ):  # it lacks another one
            raise
        raise ct.RungError(
            f"{rung.path}: launch={name}, but there is no tensor/gemm/{name}.py"
        ) from None
    if rung.path != module.SOURCE:
        raise ct.RungError(
            f"{rung.path}: launch={name} is for {module.SOURCE}; say tile=128x64 and what else its launch needs"
        )
    return module.prepare


def launcher(
    rung: ct.Rung,
    a,
    b,
    c,
    kernel: ct.Kernel | None = None,
    spare: int = 0,
) -> Callable[[], object]:
    """A callable that runs a rung without `launch` once: C = A B. a, b, c: uint16 arrays; some extent, some depth.

    kernel: a variant that takes the place of the rung's own. spare: bytes of shared memory that no block needs. Raises
    TypeError, ValueError for arrays that do not fit.
    """
    take = ct.operands(rung.name)
    m, k = take.read("A", a, "uint16", (None, None), align=16).shape
    n = take.read("B", b, "uint16", (k, None), align=16).shape[1]
    take.write("C", c, "uint16", (m, n), align=16)
    option = rung.options
    kernel, (columns, rows) = kernel or rung.compile(), _pair(rung, "tile")
    stages = int(rung.kernel.partition("<")[2].rstrip(">").split(",")[0] or 0)
    shared = stages * rung.number("stage", 0) + spare
    operands = [a, b, c]
    if "box_a" in option:
        if "stage" in option:
            shared += stages * 16  # two barriers
        operands[:2] = (
            ct.tensor_map(a, _pair(rung, "box_a"), swizzle=128),
            ct.tensor_map(b, (64, 64), swizzle=128),
        )
    if "boxes" in option:
        operands[2] = ct.tensor_map(c, (64, 64), swizzle=128)
        shared += rung.number("boxes") * BOX
    grid = ct.cdiv(n, columns), ct.cdiv(m, rows)
    if "cluster" in option:
        cluster = rung.number("cluster")
        most = ct.device().sm_count // cluster
        tiles = ct.cdiv(m, rows * cluster) * grid[0]
        grid = cluster * min(most, tiles)

    def run() -> None:
        kernel(
            *operands, m, n, k, grid=grid, block=rung.number("block"),
            shared=shared,
        )  # fmt: skip

    run.out, run.kept = c, (a, b, c)  # a map keeps nothing alive
    return run


def refuses(rung: ct.Rung, m: int, n: int, k: int, **_) -> str | None:
    """Why a kernel does not take these sizes; None where it does."""
    if "launch" in rung.options:
        return None
    steps = rung.options.get("multiples", "1x8x8").split("x")
    if len(steps) != 3 or not all(
        step.isdecimal() and int(step) for step in steps
    ):
        raise ct.RungError(
            f"{rung.path}: the @rung line needs multiples=1x8x8 or the like, for m, n and k, but says '{'x'.join(steps)}'"
        )
    for name, extent, step in zip("mnk", (m, n, k), map(int, steps)):
        if extent % step or (step > 1 and not extent):
            return (
                f"{rung.name} takes only multiples of {step} for {name}, "
                f"not {m} x {n} x {k}"
            )
    return None


def cublas(a, b, c) -> Callable[[], object] | None:
    """cuBLAS through PyTorch: C = A B. It is the vendor's, so ratios are to it."""
    return torch_rival.rival(
        lambda torch, x, y, out: lambda: torch.matmul(x, y, out=out),
        *(a, b, c),
        vendor=True,
    )


@lru_cache(maxsize=4)
def random_factors(
    m: int, n: int, k: int, seed: int = 0, integers: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """A (m x k) and B (k x n), bf16 as uint16."""
    rng = ct.rng(seed)
    if integers:
        return tuple(
            to_bf16(rng.integers(-4, 5, shape)) for shape in ((m, k), (k, n))
        )
    return tuple(
        to_bf16(rng.random(shape, "float32") * np.float32(2) - np.float32(1))
        for shape in ((m, k), (k, n))
    )


def error_bound(k: int) -> float:
    """g so that |sum - exact| <= g * (sum of |a_i b_i|), for k products summed by tensor cores in fp32.

    Products of bf16 are exact in fp32. The hardware cuts sums off where fp32 would round them, which may miss a whole unit
    in the last place each time instead of half of one.
    """
    u = float(np.finfo("float32").eps)
    return k * u / (1 - k * u)


def _pair(rung: ct.Rung, option: str) -> tuple[int, int]:
    """`128x64` as numbers. Raises ct.RungError."""
    text = rung.options.get(option, "")
    try:
        first, second = (int(word) for word in text.split("x"))
    except ValueError:
        raise ct.RungError(
            f"{rung.path}: the @rung line needs {option}=128x64 or the like, but says '{text}'"
        ) from None
    return first, second


LADDER = ct.Ladder(
    "tensor",
    Gemm,
    trials=[
        *(
            {"m": m, "n": n, "k": k, "integers": True}
            for m, n, k in (
                (1, 8, 8),
                (64, 64, 64),
                (130, 264, 72),
                (257, 520, 200),
                (520, 1032, 704),
            )
        ),
        {"m": 1000, "n": 1000, "k": 1000},
        {"m": 2048, "n": 2048, "k": 2048},
    ],
    more_trials=[
        {"m": m, "n": n, "k": k, "integers": True}
        for m, n, k in (
            (0, 8, 8),
            (5, 0, 3),
            (5, 3, 0),
            (1, 1, 1),
            (129, 131, 69),
            (257, 260, 130),
        )
    ],
    contest={"m": 4096, "n": 4096, "k": 4096},
    refuses=refuses,
)
