"""The reader's half of cudatut on a real GPU: what works, and how bad input is answered."""

import shutil

import numpy as np
import pytest

import cudatut as ct
from cudatut.gpu import limits, profile, sanitizer, vendor

SCALE = """
__global__ void scale(const float *x, float *out, float a, long long n) {
  long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = a * x[i];
}
"""


@pytest.fixture(scope="module")
def scale():
    return ct.Kernel(SCALE, "scale")


@pytest.mark.parametrize("n", [*ct.RAGGED, 256])
def test_launch_converts_arguments_and_covers_ragged_sizes(scale, n):
    host = ct.rng(n).standard_normal(n, dtype="float32")
    out = ct.empty(n, "float32")
    scale(ct.to_device(host), out, 3, n, grid=ct.cdiv(n, 256), block=256)
    ct.check(out, 3 * host.astype("float64"))


def test_an_array_that_is_not_contiguous_on_the_host_is_copied_in_order():
    host = np.arange(12, dtype="float32").reshape(3, 4).T
    assert np.array_equal(ct.to_device(host).get(), host)


def test_empty_arrays_and_zero_dimensions():
    assert ct.empty(0, "float32").get().shape == (0,)
    assert ct.to_device(np.zeros((0, 3), "float32")).shape == (0, 3)
    ct.check(ct.to_device(np.zeros(0, "float32")), np.zeros(0))


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (lambda x, out: (x, out, 3), TypeError, "takes 4 arguments, got 3"),
        (lambda x, out: (x.get(), out, 3, 10), TypeError, "host array"),
        (lambda x, out: (ct.to_device(np.zeros(10)), out, 3, 10), TypeError, "float64"),
        (lambda x, out: (x, out, 3, 1.5), TypeError, "takes an integer"),
        (lambda x, out: (x, out, 3, 1 << 63), ValueError, "does not fit"),
        (lambda x, out: (x, out, "3", 10), TypeError, "takes a number"),
        (lambda x, out: (7, out, 3, 10), TypeError, "is a pointer"),
        (lambda x, out: (x[::2], out, 3, 10), ValueError, "not C-contiguous"),
    ],
)
def test_bad_arguments_are_named(scale, arguments, error, message):
    x, out = ct.to_device(np.ones(20, "float32")), ct.empty(20, "float32")
    with pytest.raises(error, match=message):
        scale(*arguments(x, out), grid=1, block=32)


@pytest.mark.parametrize(
    ("grid", "block", "message"),
    [
        (0, 32, "grid.x = 0"),
        (1, 0, "block.x = 0"),
        (1, 5000, "allows 1 to 1024"),
        (1, (64, 64), "4096 threads"),
        ((1, 65536), 32, "grid.y = 65536"),
        (1.5, 32, "whole numbers"),
        ((1, 1, 1, 1), 32, "one to three"),
    ],
)
def test_launches_that_cannot_run_say_why(scale, grid, block, message):
    x, out = ct.to_device(np.ones(20, "float32")), ct.empty(20, "float32")
    with pytest.raises(ct.LaunchError, match=message):
        scale(x, out, 1, 20, grid=grid, block=block)


def test_too_much_shared_memory_is_refused(scale):
    x, out = ct.to_device(np.ones(20, "float32")), ct.empty(20, "float32")
    with pytest.raises(ct.LaunchError, match="shared memory"):
        scale(x, out, 1, 20, grid=1, block=32, shared=1 << 20)


def test_more_than_48_kb_of_dynamic_shared_memory_works():
    kernel = ct.Kernel(
        "extern __shared__ int s[]; __global__ void k(int *out, int n) { s[n] = 5; out[0] = s[n]; }",
        "k",
    )
    out = ct.empty(1, "int32")
    last = ct.device().shared_per_block_optin // 4 - 1
    kernel(out, last, grid=1, block=1, shared=ct.device().shared_per_block_optin)
    ct.check(out, 5)


def test_a_compile_error_shows_the_line():
    with pytest.raises(
        ct.KernelCompileError, match=r"line 3: error: .*\n.*\n.*3 \|   out\[0\] = undefined_name;"
    ):
        ct.Kernel("\n__global__ void k(float *out) {\n  out[0] = undefined_name;\n}", "k")


def test_a_kernel_name_that_is_not_there():
    with pytest.raises(ct.KernelCompileError, match=r"no kernel named 'scales'.*scale"):
        ct.Kernel(SCALE, "scales")


TEMPLATES = """
struct __align__(64) Table { float values[32]; };
template <typename T, int STEP = 1, bool NEGATE = false>
__global__ void __launch_bounds__(256) fill(T *out, T first, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = (NEGATE ? -1 : 1) * (first + T(i * STEP));
}
template <int N>
__global__ void pick(const __grid_constant__ Table table, float *out, int n, bool twice) {
  if (threadIdx.x < n) out[threadIdx.x] = table.values[threadIdx.x % N] * (twice ? 2 : 1);
}
"""


@pytest.mark.parametrize("dtype", ["float32", "int32", "float64"])
def test_a_template_is_instantiated_by_its_name(dtype):
    ctype = {"float32": "float", "int32": "int", "float64": "double"}[dtype]
    fill = ct.Kernel(TEMPLATES, f"fill<{ctype},3, true>")
    assert fill.name == f"fill<{ctype}, 3, true>" and fill.symbol.startswith("_Z4fillI")
    out = ct.empty(1000, dtype)
    fill(out, 7, 1000, grid=4, block=256)
    ct.check(out, -(7 + 3 * np.arange(1000)).astype(dtype))
    with pytest.raises(TypeError, match="the array is uint8"):
        fill(ct.empty(1000, "uint8"), 7, 1000, grid=4, block=256)
    assert fill.resources(block=256).kernel == fill.name
    with pytest.raises(ct.LaunchError, match="__launch_bounds__"):
        fill(out, 7, 1000, grid=1, block=512)


def test_default_arguments_of_a_template():
    out = ct.empty(256, "float32")
    ct.Kernel(TEMPLATES, "fill<float>")(out, 0, 256, grid=1, block=256)
    ct.check(out, np.arange(256.0))


def test_a_source_that_makes_an_instance_itself():
    source = TEMPLATES + "template __global__ void fill<float, 9>(float *, float, int);\n"
    with pytest.raises(ct.KernelCompileError, match="keep one instance of this template"):
        ct.Kernel(source, "fill<float>")


@pytest.mark.parametrize("as_bytes", [True, False])
def test_a_struct_is_passed_by_value(as_bytes):
    values = np.arange(32, dtype="float32") + 1
    table = values.tobytes() if as_bytes else np.zeros((), [("values", "float32", 32)])
    if not as_bytes:
        table["values"] = values
    pick, out = ct.Kernel(TEMPLATES, "pick<8>"), ct.empty(32, "float32")
    for twice in (False, True):
        pick(table, out, 32, twice, grid=1, block=32)
        ct.check(out, np.tile(values[:8], 4).astype("float64") * (2 if twice else 1))


@pytest.mark.parametrize("align", [8, 16, 64, 128])
def test_a_struct_lies_where_the_kernel_looks_wherever_it_stands(align):
    struct = f"struct __align__({align}) S {{ float x[32]; }};"
    body = "{ out[threadIdx.x] = s.x[threadIdx.x] + t.x[threadIdx.x] + n; }"
    values = np.arange(32, dtype="float32") + 1
    for order in ("S s, S t, float *out, int n", "float *out, int n, S s, S t"):
        kernel, out = (
            ct.Kernel(f"{struct} __global__ void k({order}) {body}", "k"),
            ct.empty(32, "float32"),
        )
        structs, others = (values.tobytes(), (10 * values).tobytes()), (out, 5)
        kernel(*(structs + others if order[0] == "S" else others + structs), grid=1, block=32)
        ct.check(out, 11 * values.astype("float64") + 5)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("fil<float>", r"\"fil\" is undefined[\s\S]* defines \[.*fill<"),
        ("fill<float, 1, true, 2>", r"fill<float, 1, true, 2>[\s\S]* defines \[.*fill<"),
        ("fill", r"no kernel named 'fill'; it defines \[.*fill<"),
    ],
)
def test_an_instance_that_cannot_be(name, message):
    with pytest.raises(ct.KernelCompileError, match=message):
        ct.Kernel(TEMPLATES, name)


def test_a_file_that_is_not_there():
    with pytest.raises(FileNotFoundError, match=r"start/nothing\.cu"):
        ct.Kernel("start/nothing.cu", "k")


def test_out_of_memory_says_how_much_is_free():
    with pytest.raises(ct.OutOfDeviceMemory, match=r"GiB are free|are free on the GPU"):
        ct.empty(ct.device().memory_bytes * 2, "uint8")
    ct.check(ct.to_device(np.ones(3, "float32")), np.ones(3))  # and the context still works


def test_resources_agree_with_the_compiler(scale):
    resources = scale.resources(block=256)
    assert (
        4 <= resources.registers <= 32 and resources.spill_bytes == 0 and resources.occupancy == 1.0
    )
    assert scale.resources(block=32).blocks_per_sm == ct.device().max_blocks_per_sm


def test_poison_makes_a_second_launch_prove_itself(scale):
    x, out = ct.to_device(np.ones(20, "float32")), ct.empty(20, "float32")
    scale(x, out, 2, 20, grid=1, block=32)
    ct.check(out, np.full(20, 2.0))
    ct.poison(out)
    with pytest.raises(ct.CheckError, match="20 of them were never written"):
        ct.check(out, np.full(20, 2.0))


def test_bench_takes_turns(scale):
    """How long each took is for recordings to say: others may use this GPU at the same time."""
    n, ran = 1 << 20, []
    x, out = ct.to_device(ct.rng().standard_normal(n, dtype="float32")), ct.empty(n, "float32")

    def launch(name, n):
        ran.append(name)
        scale(x, out, 2, n, grid=ct.cdiv(n, 256), block=256)

    result = ct.bench(
        {
            "scale": lambda: launch("scale", n),
            "half of it": lambda: launch("half of it", n // 2),
            "vendor": vendor.copy(out, x),
        },
        bytes={"scale": 8 * n, "half of it": 4 * n, "vendor": 8 * n},
        rounds=21,
    )
    assert [row.name for row in result.rows] == ["scale", "half of it", "vendor"]
    assert all(0 < row.p20_us <= row.median_us <= row.p80_us for row in result.rows)
    assert all(row.of_peak > 0 for row in result.rows)
    for row in result.rows:
        assert row.value == pytest.approx(row.bytes / row.median_us / 1e3)
    assert result["vendor"].ratio_to_vendor == 1.0
    assert min(map(ran.count, ("scale", "half of it"))) >= 21
    assert ran.index("half of it") < len(ran) - ran[::-1].index("scale")  # not one after the other


def test_bench_without_candidates():
    with pytest.raises(ct.BenchError, match="nothing to measure"):
        ct.bench({"missing": None})


def test_limits_are_not_above_what_the_gpu_can_do():
    """A limit that is too high comes of a time that is too short. Too low it may be: others may use the GPU."""
    gpu = ct.device()
    theoretical = 2 * gpu.memory_clock_khz * 1e3 * gpu.bus_bits / 8 / 1e9
    assert 0 < limits.bandwidth() < theoretical
    cores = {7: 64, 8: 64 if gpu.compute_capability == (8, 0) else 128}.get(
        gpu.compute_capability[0], 128
    )
    peak = 2 * cores * gpu.sm_count * gpu.clock_khz * 1e3 / 1e12
    assert 0 < limits.fma() < 1.05 * peak


def test_an_illegal_address_stays_in_its_process():
    done = ct.isolated(
        "import cudatut as ct\n"
        "k = ct.Kernel('__global__ void k(int *p) { *(int *)8 = 1; }', 'k')\n"
        "k(ct.empty(1, 'int32'), grid=1, block=1)\nct.synchronize()\n"
    )
    assert done.returncode != 0 and "illegal" in done.stderr
    ct.check(ct.to_device(np.ones(3, "float32")), np.ones(3))


TWO_KERNELS = """
import numpy as np
import cudatut as ct

SOURCE = "__global__ void {}(float *x) {{ x[threadIdx.x + blockIdx.x * blockDim.x] = threadIdx.x; }}"
x = ct.empty(256 * 8, "float32")
for name, blocks in (("first", 2), ("second", 8), ("first", 8)):
    ct.Kernel(SOURCE.format(name), name)(x, grid=blocks, block=256)
ct.check(x, np.tile(np.arange(256, dtype="float32"), 8))
"""


@pytest.mark.alone  # beside kernels of other processes ncu now and then counts nothing
@pytest.mark.xdist_group("profilers")
@pytest.mark.skipif(shutil.which("ncu") is None, reason="needs ncu, which comes with the toolkit")
def test_counters_of_two_kernels(tmp_path):
    """Stores, which no other launch may add to: a warp stores once."""
    file, stores = tmp_path / "two.py", "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum"
    file.write_text(TWO_KERNELS)
    found = profile.profile_kernels(str(file), ["second", "first"], [stores])
    assert [found[name][stores] for name in ("second", "first")] == [64, 16]
    assert ct.profile(str(file), "first", [stores], skip=1)[stores] == 64
    launches = profile.profile_launches(str(file), "first", [stores], launches=2)
    assert [launch[stores] for launch in launches] == [16, 64]


BESIDE = """
import cudatut as ct

SOURCE = "__global__ void store(int *x, int n) { if (threadIdx.x < n) x[threadIdx.x] = 1; }"
x = ct.empty(31, "int32")
ct.Kernel(SOURCE, "store")(x, COUNT, grid=1, block=32)
ct.synchronize()
"""


def test_several_files_share_a_process_under_a_tool(tmp_path):
    good, bad = tmp_path / "good.py", tmp_path / "bad.py"
    good.write_text(BESIDE.replace("COUNT", "31"))
    bad.write_text(BESIDE.replace("COUNT", "32"))
    assert sanitizer.run([good, good], "memcheck").errors == 0
    assert sanitizer.run([good, bad, good], "memcheck").errors > 0


SPIN = """
__global__ void spin(long long cycles) {
  for (const long long start = clock64(); clock64() - start < cycles;);
}
__global__ void copy(const int* x, int* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i];
}"""


def test_new_arrays_are_ready_for_a_kernel_on_any_stream():
    """The default stream is busy meanwhile, and a non-blocking stream does not wait for it: neither the poison nor the
    copy may arrive after the kernel."""
    import pycuda.driver as cuda

    spin, copy = (ct.Kernel(SPIN, name) for name in ("spin", "copy"))
    host, stream = np.arange(1024, dtype="int32"), cuda.Stream(1)
    warm = ct.to_device(host), ct.empty(1024, "int32")
    copy(*warm, 1024, grid=4, block=256, stream=stream)  # compiled and loaded
    ct.synchronize()
    spin(400_000_000, grid=1, block=1)  # some 0.2 s
    ended = cuda.Event().record()
    x, out = ct.to_device(host), ct.empty(1024, "int32")
    copy(x, out, 1024, grid=4, block=256, stream=stream)
    stream.synchronize()
    assert not ended.query()  # else this shows nothing
    ct.check(out, host)


def test_an_array_with_another_poison():
    out = ct.empty(100, "int32")
    with pytest.raises(ct.CheckError, match="nobody can tell whether a kernel wrote them"):
        ct.check(out, np.full(100, -1))
    ct.poison(out, 0x5A)
    with pytest.raises(ct.CheckError, match="100 of them were never written"):
        ct.check(out, np.full(100, -1))
    out.fill(np.int32(-1))
    ct.check(out, np.full(100, -1))
    with pytest.raises(ValueError, match="a byte is 0 to 255"):
        ct.poison(out, 256)


def test_a_number_beyond_its_type_is_refused(scale):
    x, out = ct.to_device(np.ones(20, "float32")), ct.empty(20, "float32")
    with pytest.raises(ValueError, match=r"1e\+300 does not fit: float32 goes up to"):
        scale(x, out, 1e300, 20, grid=1, block=32)


def test_rivals_refuse_what_they_would_compute_wrongly():
    x = ct.to_device(np.arange(16, dtype="float32"))
    square, short = x.reshape(4, 4), ct.empty(15, "float32")
    out = ct.empty((4, 4), "float32")
    for call in (
        lambda: vendor.sum(x[::2]), lambda: vendor.copy(short, x), lambda: vendor.copy(x, short),
        lambda: vendor.gemm(square, square.T, out), lambda: vendor.gemm(square, square, square),
        lambda: vendor.matmul(square, square, square),
    ):  # fmt: skip
        with pytest.raises(ValueError):
            call()
    bytes_ = ct.to_device(np.arange(16, dtype="uint8"))
    with pytest.raises(ValueError):
        vendor.histogram(bytes_[::2])
