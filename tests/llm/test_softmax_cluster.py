"""softmax_cluster.cu on a CPU (tests/tensor/hopper_on_cpu): its blocks in random interleavings, and what happens without its
barriers."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from emulator import built, ended, fault
from llm_rows import HALF_ULP, assert_close, stored, value

from cudatut.book.llm.kernels import row_softmax

HERE = Path(__file__).parent
TYPES = {"float32": "float", "bf16": "__nv_bfloat16"}
BEGIN = "  arrive_early();\n"
BEGUN = "  wait_for_cluster();\n  // Every block gets"
TO_ALL = "  if (threadIdx.x < BLOCKS)\n"
PUSHED = "  wait_for_pairs(&brought);\n"
EXPECT = "expect_pairs(&brought, BLOCKS);"
FAULTS = {  # what is left out: lines, and what stands in their place
    "begun": ((BEGIN, ""), (BEGUN, "  // Every block gets")),
    "pushed": ((PUSHED, ""),),
    "push": ((TO_ALL, "  if (false)\n"),),
    "push to all": ((TO_ALL, "  if (threadIdx.x == rank)\n"),),
    "all pairs": ((EXPECT, EXPECT.replace("BLOCKS", "BLOCKS - 1")),),
    "block": (("    __syncthreads();\n    // Every warp", "    // Every warp"),),
}


def without(lines):
    def change(text):
        for before, after in lines:
            text = fault(before, after)(text)
        return text

    return change


@pytest.fixture(scope="module")
def build(tmp_path_factory):
    """An instance of the kernel as a function that says whether it has ended well. change: of its text."""

    def build(instance, change=lambda text: text):
        program = built(
            tmp_path_factory.mktemp("softmax"), HERE / "hopper_on_cpu/softmax.cpp",
            "llm/kernels/softmax_cluster.cu", change, PLAN=",".join(map(str, instance)),
        )  # fmt: skip

        def run(x, out, width, scale=1.0, queries=0, lengths=None, seed=0):
            numbers = (
                len(x),
                width,
                x.shape[1],
                out.shape[1],
                scale,
                queries,
                int(lengths is not None),
                seed,
            )
            given = x, *([] if lengths is None else [lengths]), out
            written, bad = ended(program, numbers, b"".join(one.tobytes() for one in given))
            if bad:
                return False
            out[:] = np.frombuffer(written, out.dtype).reshape(out.shape)
            return True

        return run

    return build


def filled(shape, kind):
    """All bits set: NaN."""
    return (
        np.full(shape, -1, "int32").view("float32")
        if kind == "float32"
        else np.full(shape, 0xFFFF, "uint16")
    )


def reference(x, scale, seen):
    out = np.zeros_like(x)
    for r, count in enumerate(seen):
        if count and (largest := x[r, :count].max()) > -np.inf:
            powers = np.exp(scale * (x[r, :count] - largest))
            out[r, :count] = powers / powers.sum()
    return out


def instance(width, kind, out_kind):
    """As `softmax` chooses it."""
    vec = 16 // (4 if kind == "float32" else 2)
    vec = vec if width % 8 == 0 else 1
    return (TYPES[kind], TYPES[out_kind], vec, *row_softmax.cluster_share(width, vec))


@pytest.mark.parametrize(
    ("width", "kind", "out_kind"),
    [
        (49152, "float32", "float32"),
        (128256, "float32", "bf16"),
        (128256, "bf16", "bf16"),
        (32768, "bf16", "float32"),
        (262144, "bf16", "bf16"),
        (32769, "float32", "float32"),
        (50257, "bf16", "float32"),
        (262144, "float32", "float32"),
        (40, "float32", "float32"),
    ],
)
def test_rows(build, width, kind, out_kind):
    run = build(instance(width, kind, out_kind))
    rows, pad = 3, 8
    x, x64 = stored(3 * np.random.default_rng(width).standard_normal((rows, width)), kind)
    wide = filled((rows, width + pad), kind)
    lengths = np.array([width, width // 3, 0], "int32")
    wide[:, :width] = x
    for r in range(rows):
        wide[r, lengths[r] : width] = filled((1, 1), kind)[0, 0]  # NaN, which the row doesn't see
    out = filled((rows, width + pad), out_kind)
    assert run(wide, out, width, 0.7, lengths=lengths, seed=width)
    relative = 2e-5 if out_kind == "float32" else HALF_ULP * 1.01
    want = reference(x64, np.float32(0.7), lengths)
    assert_close(out[:, :width], want, 1e-7 * want.max(), relative)
    assert np.isnan(value(out[:, width:])).all()


SMALL = ("float", "float", 4, 64, 3, 4)  # 4 blocks of 64 threads, up to 3072 columns


def small(run, seed):
    """Of 8 rows: the wrong ones; all of them if the threads wait for each other."""
    rng, width = np.random.default_rng(seed), 3000
    x = rng.standard_normal((8, width)).astype("float32")
    x[:, rng.integers(width)] = 9  # one block has the largest number
    out = np.full_like(x, np.nan)
    if not run(x, out, width, queries=0, seed=seed):
        return 8
    want = reference(x.astype("float64"), 1.0, [width] * 8)
    return int((~np.isclose(out, want, rtol=2e-5, atol=0)).any(axis=1).sum())


def test_any_order(build):
    run = build(SMALL)
    assert [small(run, seed) for seed in range(25)] == [0] * 25


@pytest.mark.parametrize("name", FAULTS)
def test_each_barrier_is_needed_and_the_push(build, name):
    run = build(SMALL, without(FAULTS[name]))
    assert sum(small(run, seed) > 0 for seed in range(25)) > 5


def test_infinities(build):
    run = build(SMALL)
    x = np.random.default_rng(1).standard_normal((4, 3000)).astype("float32")
    x[0] = -np.inf
    x[1, 256:] = -np.inf  # the other blocks' parts have neither largest number nor sum
    x[2, 17] = np.nan
    out = np.full_like(x, np.nan)
    assert run(x, out, 3000, seed=5)
    want = reference(x.astype("float64"), 1.0, [3000] * 4)
    assert not out[0].any() and np.isnan(out[2]).all()
    assert_close(out[[1, 3]], want[[1, 3]], 1e-37, 2e-5)


def test_causal(build):
    run = build(SMALL)
    x = np.random.default_rng(2).standard_normal((6, 2000)).astype("float32")
    out = np.full_like(x, np.nan)
    assert run(x, out, 2000, queries=3, seed=6)
    want = reference(x.astype("float64"), 1.0, [1998, 1999, 2000] * 2)
    assert_close(out, want, 0, 2e-5)


@pytest.mark.parametrize("vec", [1, 4, 8])
def test_share(vec):
    most = 8 * vec if vec > 1 else 32  # elements of a thread
    for width in (
        *range(vec, 4000 * vec, 97 * vec),
        *(49152, 65536, 65544, 128256, 131072, 131080, 8 * row_softmax.WIDEST),
    ):
        threads, per, blocks = row_softmax.cluster_share(width, vec)
        assert blocks in (2, 4, 8) and threads in (256, 512, 1024)
        assert (per - 1) * threads * blocks * vec < width <= per * threads * blocks * vec
        assert per * vec <= most
        assert blocks == 2 or width > threads * blocks // 2 * most
        assert threads == 256 or (blocks == 8 and width > threads // 2 * blocks * most)


def test_without_clusters(monkeypatch):
    def choice(capability, width):
        gpu = SimpleNamespace(compute_capability=capability, shared_per_block_optin=232448)
        monkeypatch.setattr(row_softmax.ct, "device", lambda: gpu)
        return row_softmax._choice(SimpleNamespace(width=width, size=4))

    widths = 16383, 16384, 32768, 49152, 128256, 262144, 262145
    assert [choice((9, 0), n) for n in widths] == ["fused", *["cluster"] * 5, "online"]
    without = ["fused"] * 3 + ["shared"] + ["online"] * 3
    assert [choice((8, 0), n) for n in widths] == without


def test_launch(monkeypatch):
    """What the launcher asks for: the instance, a grid of whole clusters, rows where they lie."""
    gpu = SimpleNamespace(compute_capability=(9, 0), shared_per_block_optin=232448)
    noted = []

    def kernel(*instance):
        return lambda *arguments, **shape: noted.append((instance, arguments, shape))

    def array(dtype, rows, width, stride, at=1 << 30):
        size = np.dtype(dtype).itemsize
        interface = {
            "shape": (rows, width),
            "typestr": np.dtype(dtype).str,
            "data": (at, False),
            "version": 3,
        }
        return SimpleNamespace(
            __cuda_array_interface__=interface | {"strides": (stride * size, size)}
        )

    monkeypatch.setattr(row_softmax.ct, "device", lambda: gpu)
    monkeypatch.setattr(row_softmax, "kernel", kernel)
    row_softmax.softmax(
        array("float32", 5, 128256, 128260), array("uint16", 5, 128256, 128256, 1 << 40), 0.5
    )
    row_softmax.softmax(
        array("float32", 2, 50257, 50257), array("float32", 2, 50257, 50257, 1 << 40)
    )
    (first, where, shape), (second, _, odd) = noted
    source = "llm/kernels/softmax_cluster.cu", "softmax_cluster"
    assert first == (*source, "float", "__nv_bfloat16", 4, 512, 8, 8)
    assert where[:6] == (1 << 30, 128260, 1 << 40, 128256, 128256, 0.5)
    assert (shape["grid"], shape["block"], shape["shared"]) == (5 * 8, 512, 0)
    assert second == (*source, "float", "float", 1, 256, 25, 8)
    assert (odd["grid"], odd["block"]) == (2 * 8, 256)
    with pytest.raises(ValueError, match="'cluster' holds 262144"):
        row_softmax.softmax(
            array("float32", 1, 262145, 262145),
            array("float32", 1, 262145, 262145, 1 << 40),
            by="cluster",
        )
    gpu.compute_capability = (8, 9)
    with pytest.raises(ValueError, match="should be one of"):
        row_softmax.softmax(
            array("float32", 1, 99, 99), array("float32", 1, 99, 99, 1 << 40), by="cluster"
        )
