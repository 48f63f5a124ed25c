"""The vendor's rivals, as far as they go without a GPU: CUB's wrapper compiles with the nvcc that is here."""

import ctypes
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from on_gpu import OnGpu

from cudatut import KernelCompileError, ToolMissing, tool
from cudatut.gpu import bench, device, vendor
from cudatut.gpu.timing import Run
from cudatut.results import Benchmark, Row, validate


def test_the_wrapper_of_cub_compiles(compiler, tmp_path):
    source = Path(vendor.__file__).with_name("vendor_cub.cu").read_text(encoding="utf-8")
    done = compiler(source, ["-std=c++17", "-arch=sm_90", "-c"], tmp_path)
    assert done.status == 0, done.log


@pytest.mark.parametrize(
    ("a", "b", "c", "options", "message"),
    [
        ((3, 4), (5, 6), (3, 6), {}, r"b is \[5, 6\], and must be \[4, any\]"),
        ((3, 4), (4, 6), (6, 3), {}, r"c is \[6, 3\], and must be \[3, 6\]"),
        ((4, 3), (4, 6), (3, 6), {}, r"b is .* must be \[3, any\]"),
        ((4, 3), (4, 6), (3, 5), {"transpose_a": True}, r"c is .* must be \[3, 6\]"),
        ((3, 4), (6, 4), (3, 5), {"transpose_b": True}, r"c is .* must be \[3, 6\]"),
        ((3,), (3, 6), (1, 6), {}, r"a is \[3\], and must be \[any, any\]"),
    ],
)
def test_shapes_that_do_not_fit_are_refused(a, b, c, options, message):
    arrays = (OnGpu(np.zeros(shape, "float32")) for shape in (a, b, c))
    with pytest.raises(ValueError, match=message):
        vendor.gemm(*arrays, **options)


def arrays(*shapes, dtype="float32"):
    return [OnGpu(np.zeros(shape, dtype)) for shape in shapes]


@pytest.mark.parametrize("rival", [vendor.gemm, vendor.matmul])
def test_products_take_one_type_and_write_to_no_factor(rival):
    (a,) = arrays((2, 2), dtype="float64")
    with pytest.raises(TypeError, match="a is float64"):
        rival(a, a, a)
    a, b = arrays((2, 2), (2, 2))
    with pytest.raises(ValueError, match="shares memory with b"):
        rival(a, b, b)
    with pytest.raises(ValueError, match="not C-contiguous"):
        rival(OnGpu(a.host.T), b, *arrays((2, 2)))


def test_copies_and_sums_take_what_lies_in_one_piece():
    x, other = np.arange(8, dtype="int32"), np.zeros(8, "int32")
    for sizes in ((8, 7), (7, 8)):
        with pytest.raises(ValueError, match="bytes do not fit into a target of"):
            vendor.copy(OnGpu(other[: sizes[0]]), OnGpu(x[: sizes[1]]))
    with pytest.raises(ValueError, match="shares memory"):
        vendor.copy(OnGpu(x[1:]), OnGpu(x[:-1]))
    for take in (vendor.sum, lambda x: vendor.copy(OnGpu(other[:4]), x)):
        with pytest.raises(ValueError, match="not C-contiguous"):
            take(OnGpu(x[::2]))
    with pytest.raises(TypeError, match="x is float64, and must be float32 or int32"):
        vendor.sum(OnGpu(np.zeros(8)))
    with pytest.raises(TypeError, match="x is int32, and must be uint8"):
        vendor.histogram(OnGpu(x))
    with pytest.raises(ValueError, match="not C-contiguous"):
        vendor.histogram(OnGpu(np.zeros(8, "uint8")[::2]))


def test_a_rival_that_is_not_the_vendors(monkeypatch):
    """CuPy's generated kernels are timed beside ours; no ratio "to the vendor" comes of it."""

    class CuPy:
        asarray = staticmethod(lambda array: array)
        add = staticmethod(lambda a, b, out: "added")

    monkeypatch.setattr(vendor, "_cupy", lambda: CuPy)
    rival = vendor.add(*arrays((3,), (3,), (3,)))
    assert rival() == "added"
    assert rival.vendor is False
    assert vendor.Vendor(rival).vendor is True
    times = {"ours": [Run(2.0, 0.0)], "CuPy": [Run(1.0, 0.0)]}
    runs = {"ours": object(), "CuPy": rival}
    rows = bench._result("add", runs, times, None, None, 1, None).rows
    assert [(row.vendor, row.ratio_to_vendor) for row in rows] == [(False, None)] * 2


# --- a rival that cannot run says why --------------------------------------------------------------


@pytest.fixture
def no_cache(monkeypatch):
    monkeypatch.setattr(vendor, "activate", lambda: None)
    monkeypatch.setattr(tool, "recording", lambda: False)
    monkeypatch.delenv("CUDATUT_TOOL", raising=False)
    for function in (vendor._cupy, vendor._cublas, vendor._torch):
        function.cache_clear()
    yield monkeypatch
    for function in (vendor._cupy, vendor._cublas, vendor._torch):
        function.cache_clear()


@pytest.fixture(params=[(12, 8), (13, 0), None])
def driver(request, monkeypatch):
    monkeypatch.setattr(device, "driver_cuda", lambda: request.param)
    return request.param


def test_a_cupy_that_is_missing(no_cache, driver, capsys):
    no_cache.setitem(sys.modules, "cupy", None)
    found = vendor.matmul(*arrays((2, 2), (2, 2), (2, 2)))
    assert isinstance(found, vendor.Missing) and not found
    wanted = f"`pip install cupy-cuda{driver[0]}x`" if driver else "no CuPy fits this driver"
    assert found.reason.startswith("CuPy cannot run here (import") and wanted in found.reason
    assert vendor.cupy() is None and found.reason in capsys.readouterr().out


def test_a_cupy_of_another_cuda(no_cache, driver):
    def zeros(*shape):
        raise RuntimeError("cudaErrorInsufficientDriver: CUDA driver version is insufficient")

    no_cache.setitem(sys.modules, "cupy", SimpleNamespace(zeros=zeros))
    for found in (vendor.copy(*arrays((3,), (3,))), vendor.add(*arrays((3,), (3,), (3,)))):
        assert "cudaErrorInsufficientDriver" in found.reason and "\n" not in found.reason


def test_a_cublas_that_does_not_start(no_cache):
    def handle():
        raise ImportError("libcublas.so.12: cannot open shared object file")

    array = SimpleNamespace(sum=lambda: SimpleNamespace(get=lambda: 0))
    fake = SimpleNamespace(zeros=lambda *a: array, cuda=SimpleNamespace(get_cublas_handle=handle))
    no_cache.setitem(sys.modules, "cupy", fake)
    assert vendor.cupy() is fake
    assert (
        "cuBLAS cannot run here (libcublas.so.12"
        in vendor.matmul(*arrays((2, 2), (2, 2), (2, 2))).reason
    )


def test_while_an_example_is_recorded_it_is_an_error(no_cache):
    no_cache.setattr(tool, "recording", lambda: True)
    no_cache.setitem(sys.modules, "cupy", None)
    with pytest.raises(ToolMissing, match="CuPy cannot run here"):
        vendor.cupy()


def test_the_reason_stands_in_the_place_of_the_row():
    calls = []

    def breaks():
        raise RuntimeError("no kernel image")

    runs, missing = bench._able(
        {
            "ours": lambda: calls.append(1),
            "left out": None,
            "absent": vendor.Missing("not installed"),
            "breaks": vendor.Vendor(breaks),
            "rival": vendor.Vendor(lambda: calls.append(2)),
        }
    )
    assert list(runs) == ["ours", "rival"] and calls == [2]
    assert missing == {
        "absent": "not installed",
        "breaks": "its first call failed: no kernel image",
    }

    row = Row("ours", 1.0, 1.0, 1.0, None, None, False, None)
    result = Benchmark("b", "us", None, [row], 5, missing=missing)
    assert result.text().splitlines()[-2:] == [
        "  absent *  no row: not installed",
        "  breaks *  no row: its first call failed: no kernel image",
    ]
    assert "absent: no row. not installed" in result.html()
    validate(result.json())
    assert "missing" not in Benchmark("b", "us", None, [row]).json()
    with pytest.raises(KeyError, match="not installed"):
        result["absent"]


def test_only_a_rival_with_an_array_of_its_own_has_one():
    """Examples ask `hasattr(call, "out")`: otherwise the result is what the call returns."""
    returned = vendor.Vendor(lambda: 7.0)
    assert not hasattr(returned, "out") and returned() == 7.0
    assert vendor.Vendor(lambda: None, out=[1.0]).out == [1.0]


class Cublas:
    """cublasSgemm as its manual describes it, on memory of the host: columns behind each other."""

    def __init__(self):
        self.modes = {"math": "TF32", "pointers": "of the GPU"}  # as somebody else left them

    def setMathMode(self, handle, mode):
        self.modes["math"] = mode

    def setPointerMode(self, handle, mode):
        self.modes["pointers"] = mode

    def sgemm(self, handle, trans_a, trans_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc):
        assert self.modes == {"math": 0, "pointers": 0}

        def matrix(address, rows, columns, leading):
            flat = np.ctypeslib.as_array(
                ctypes.cast(address, ctypes.POINTER(ctypes.c_float)), (columns, leading)
            )
            return flat[:, :rows].T

        scalar = [
            np.ctypeslib.as_array(ctypes.cast(x, ctypes.POINTER(ctypes.c_float)), (1,))[0]
            for x in (alpha, beta)
        ]
        left = matrix(a, k, m, lda).T if trans_a else matrix(a, m, k, lda)
        right = matrix(b, n, k, ldb).T if trans_b else matrix(b, k, n, ldb)
        out = matrix(c, m, n, ldc)
        out[:] = scalar[0] * (left @ right) + scalar[1] * out


@pytest.mark.parametrize("transpose_a", [False, True])
@pytest.mark.parametrize("transpose_b", [False, True])
def test_gemm_asks_cublas_for_what_it_says(monkeypatch, transpose_a, transpose_b):
    def on_gpu(array):
        data = SimpleNamespace(ptr=array.host.ctypes.data)
        return SimpleNamespace(shape=array.host.shape, data=data)

    cuda = SimpleNamespace(cublas=Cublas(), get_cublas_handle=lambda: 1)
    monkeypatch.setattr(vendor, "_cublas", lambda: SimpleNamespace(cuda=cuda, asarray=on_gpu))
    rng = np.random.default_rng(0)
    a, b, c = (rng.random(shape, dtype="float32") for shape in ((3, 5), (5, 7), (3, 7)))
    want = 2 * a @ b - 0.5 * c
    stored = (
        np.ascontiguousarray(x.T if turned else x)
        for x, turned in ((a, transpose_a), (b, transpose_b))
    )
    vendor.gemm(*map(OnGpu, (*stored, c)), 2.0, -0.5, transpose_a, transpose_b)()
    np.testing.assert_allclose(c, want, rtol=1e-5)


class Cub:
    """vendor_cub.cu: asked without scratch memory it says how much it needs."""

    def __init__(self):
        self.asked, self.status = [], 0

    def cub_sum_float32(self, scratch, size, source, out, count):
        self.asked.append(
            (
                scratch.value,
                source.value,
                out.value,
                count._obj.value if hasattr(count, "_obj") else count.value,
            )
        )
        size._obj.value = 96
        return self.status


def test_cub_is_asked_for_its_memory_once_and_gets_it(monkeypatch):
    cub, made = Cub(), []

    def empty(count, dtype):
        made.append((count, dtype))
        return SimpleNamespace(gpudata=1000 * len(made))

    monkeypatch.setattr(vendor, "activate", lambda: None, raising=False)
    monkeypatch.setattr(vendor, "compile_cub", lambda: cub)
    monkeypatch.setattr(vendor.memory, "empty", empty)
    call = vendor._cub_call("cub_sum_float32", SimpleNamespace(gpudata=7, size=33), (1, "float32"))
    assert made == [(1, "float32"), (96, "uint8")] and call.out.gpudata == 1000
    call(), call()
    assert cub.asked == [(None, 7, 1000, 33), (2000, 7, 1000, 33), (2000, 7, 1000, 33)]
    cub.status = 700
    with pytest.raises(vendor.CudatutError, match="cub_sum_float32 failed with CUDA error 700"):
        call()


@pytest.fixture
def libraries(monkeypatch):
    """Modules of the libraries' names; what is asked of them."""
    asked = []

    class Probe:
        def __init__(self, name):
            self.name = name

        def __call__(self, *given, **how):
            asked.append((self.name, given, how))
            return self

        def __getattr__(self, name):
            return Probe(f"{self.name}.{name}")

    monkeypatch.delenv("CUDATUT_TOOL", raising=False)
    monkeypatch.setattr(vendor, "activate", lambda: asked.append("activate"))
    monkeypatch.setattr(vendor, "cupy_package", lambda: "cupy-cuda13x")
    for name in ("cupy", "torch"):
        monkeypatch.setitem(sys.modules, name, Probe(name))
    for function in (vendor._cupy, vendor._cublas, vendor._torch):
        function.cache_clear()
    yield asked
    for function in (vendor._cupy, vendor._cublas, vendor._torch):
        function.cache_clear()


def test_a_library_shows_that_it_runs_before_it_is_a_rival(libraries):
    """One of another CUDA than the driver's imports, and fails at its first call."""
    assert vendor._cupy().name == "cupy"
    # The context of this process is there before a library would make one of its own.
    assert libraries[:2] == ["activate", ("cupy.zeros", (1, "float32"), {})] and len(libraries) == 4
    assert vendor._cublas() is sys.modules["cupy"]
    assert libraries[-1][0] == "cupy.cuda.get_cublas_handle"
    assert vendor._torch().name == "torch"
    assert libraries.index("activate", 4) < libraries.index(
        ("torch.zeros", (1,), {"device": "cuda"})
    )


def test_a_library_that_does_not_run_says_why(libraries, monkeypatch):
    def fails(*given, **how):
        raise RuntimeError("\n  libnvrtc.so.12 not found\nmore")

    monkeypatch.setattr(sys.modules["cupy"], "zeros", fails, raising=False)
    advice = r"CuPy cannot run here \(libnvrtc.so.12 not found\): `pip install cupy-cuda13x`"
    with pytest.raises(ToolMissing, match=advice):
        vendor._cupy()
    monkeypatch.setattr(sys.modules["torch"], "zeros", fails, raising=False)
    with pytest.raises(ToolMissing, match="PyTorch cannot run here"):
        vendor._torch()


def test_sums_and_histograms_are_cubs(monkeypatch):
    asked = []
    monkeypatch.setattr(
        vendor, "_cub_call", lambda *given: asked.append(given) or vendor.Vendor(len)
    )
    whole, bytes_ = OnGpu(np.zeros(4, "int32")), OnGpu(np.zeros(4, "uint8"))
    whole.dtype = whole.host.dtype  # as any array has it
    assert isinstance(vendor.sum(whole), vendor.Vendor)
    assert isinstance(vendor.histogram(bytes_), vendor.Vendor)
    assert asked == [
        ("cub_sum_int32", whole, (1, "int32")),
        ("cub_histogram_uint8", bytes_, (256, "uint32")),
    ]


def test_what_nvcc_says_of_cub_is_told(monkeypatch, tmp_path):
    import platformdirs

    nvcc, cache = tmp_path / "nvcc", tmp_path / "of a user" / "cache"  # neither is there yet
    nvcc.write_text("#!/bin/sh\necho 'cub: no such header' >&2\nexit 1\n")
    nvcc.chmod(0o755)
    monkeypatch.setattr(vendor, "find_nvcc", lambda: nvcc)
    monkeypatch.setattr(vendor, "nvcc_version", lambda path: "13.0.88")
    monkeypatch.setattr(vendor, "device", lambda: SimpleNamespace(arch="sm_90"))
    monkeypatch.setattr(platformdirs, "user_cache_dir", lambda *_: str(cache))
    vendor.compile_cub.cache_clear()
    with pytest.raises(
        KernelCompileError, match=r"nvcc refused vendor_cub.cu: cub: no such header$"
    ):
        vendor.compile_cub()
    vendor.compile_cub.cache_clear()
    assert not [*cache.iterdir()]  # nothing half made is left


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("#define CUB_VERSION 300102  // 100000 major\n", "3.1.2"),
        ("#define CUB_VERSION 201700\n", "2.17.0"),
        ("", None),
        (None, None),
    ],
)
def test_the_version_of_the_cub_that_was_measured(monkeypatch, tmp_path, text, version):
    """As its header beside nvcc says it; of a CUB that nobody called, none."""
    header = tmp_path / "include/cccl/cub/version.cuh"
    header.parent.mkdir(parents=True)
    if text is not None:
        header.write_text(text)
    compiled = SimpleNamespace(currsize=1)
    monkeypatch.setattr(vendor, "find_nvcc", lambda: tmp_path / "bin/nvcc")
    monkeypatch.setattr(vendor, "compile_cub", SimpleNamespace(cache_info=lambda: compiled))
    assert vendor.cub_version() == version
    compiled.currsize = 0
    assert vendor.cub_version() is None


class Numbers:
    """CuPy's arrays, as far as they are compiled for."""

    def __init__(self, done, count, dtype):
        self.done, self.count, self.dtype = done, count, dtype

    def astype(self, dtype):
        return Numbers(self.done, self.count, dtype)


@pytest.mark.parametrize("there", [True, False])
def test_what_the_contests_ask_for_is_compiled_ahead(monkeypatch, there):
    done = []
    cupy = SimpleNamespace(
        zeros=lambda count, dtype: Numbers(done, count, dtype),
        bincount=lambda x, minlength: done.append(("bincount", x.count, x.dtype, minlength)),
        add=lambda x, y: done.append(("add", x.count, x.dtype, y.dtype)),
    )
    monkeypatch.setattr(vendor, "compile_cub", lambda: done.append("cub"))
    monkeypatch.setattr(vendor, "cupy", lambda: cupy if there else None)
    vendor.compile_ahead()
    # Of fewer than 2048 elements CuPy would make another kernel.
    of_cupy = [("bincount", 4096, "uint8", 256), ("add", 4096, "float32", "float32")]
    assert done == ["cub", *(of_cupy if there else [])]


def test_a_sum_of_pytorch_is_in_the_type_of_its_elements(no_cache):
    probes = []
    number = SimpleNamespace(item=lambda: probes.append("item"))
    torch = SimpleNamespace(
        zeros=lambda count, device: SimpleNamespace(sum=lambda: number),
        as_tensor=lambda x, device: SimpleNamespace(held=x, dtype="int32", device=device),
        sum=lambda tensor, dtype: (tensor.held, tensor.device, dtype),
    )
    no_cache.setitem(sys.modules, "torch", torch)
    assert vendor.torch_sum("x")() == ("x", "cuda", "int32")
    assert vendor.torch_sum("x").vendor is True and probes == ["item"]


@pytest.mark.parametrize(
    ("running", "profiled", "runs"),
    [(None, False, True), ("memcheck", False, False), ("memcheck", True, False), ("ncu", False, False), ("ncu", True, True)],
)  # fmt: skip
def test_under_a_tool_a_rival_runs_only_where_a_profiler_wants_it(
    no_cache, running, profiled, runs
):
    no_cache.setattr(tool, "running", lambda: running)
    found = vendor._rival(lambda x: f"of {x}")("x", profiled=profiled)
    assert found == ("of x" if runs else None)


def test_whether_cupy_is_there_to_be_imported(monkeypatch):
    for found in (None, "a spec"):
        monkeypatch.setattr(vendor.importlib.util, "find_spec", {"cupy": found}.get)
        assert vendor.installed() is (found is not None)
