"""Kernels as far as they go without a GPU."""

import hashlib
from types import SimpleNamespace

import numpy as np
import pytest

import cudatut as ct
from cudatut.gpu import kernel
from cudatut.gpu.kernel import explain_compile_error
from cudatut.gpu.signature import parameters


def test_cdiv():
    assert [ct.cdiv(n, 256) for n in (0, 1, 256, 257)] == [0, 1, 1, 2]


def test_compile_errors_show_their_lines():
    text = explain_compile_error(
        'inline.cu(2): error: identifier "x" is undefined\n1 error', "a\nb = x;\nc", "inline.cu"
    )
    assert text.splitlines()[1:] == [
        '  inline.cu, line 2: error: identifier "x" is undefined',
        "       1 | a",
        "       2 | b = x;",
    ]
    far = explain_compile_error("inline.cu(3): error: no", "a\nb\nc\nd", "inline.cu")
    assert far.splitlines()[2:] == ["       2 | b", "       3 | c"]
    first = explain_compile_error("inline.cu(1): error: no", "a\nb", "inline.cu")
    assert first.splitlines()[2:] == ["       1 | a"]
    assert "nvcc fatal: no host compiler" in explain_compile_error(
        "nvcc fatal: no host compiler", "", "inline.cu"
    )


@pytest.mark.parametrize("watched", ["racecheck", "initcheck", "synccheck", "ncu"])
def test_only_memcheck_compiles_for_the_other_tools(monkeypatch, watched):
    monkeypatch.setenv("CUDATUT_TOOL", watched)
    monkeypatch.setattr(kernel, "Kernel", None)  # calling it would raise
    monkeypatch.setattr(kernel, "device", None)
    assert kernel.compile_ahead([("gemm/ladder/final.cu", "sgemm<1>")]) == {}


def test_what_does_not_compile_is_told_by_instance(monkeypatch):
    ran = []

    def compiled(source, name, load):
        ran.append((source, name, load))
        if name == "bad":
            raise ct.KernelCompileError("no")
        if name == "nowhere":
            raise FileNotFoundError(source)

    monkeypatch.delenv("CUDATUT_TOOL", raising=False)
    monkeypatch.setattr(kernel, "Kernel", compiled)
    monkeypatch.setattr(kernel, "device", lambda: None)
    found = kernel.compile_ahead([("a.cu", "good"), ("a.cu", "bad"), ("a.cu", "good")])
    assert list(found) == [("a.cu", "bad")] and str(found["a.cu", "bad"]) == "no"
    assert sorted(ran) == [("a.cu", "bad", False), ("a.cu", "good", False)]
    with pytest.raises(FileNotFoundError):
        kernel.compile_ahead([("b.cu", "nowhere"), ("a.cu", "good")])


def passed(ctype, value):
    """What a launch hands over for a number."""
    (parameter,) = parameters(f"__global__ void k({ctype} x) {{}}", "k")
    return kernel.Kernel._number(SimpleNamespace(name="k"), parameter, value)


@pytest.mark.parametrize(
    ("ctype", "value"),
    [
        ("float", 1e300), ("float", -1e39), ("half", 70000.0), ("half", np.float32(1e5)), ("int", 2**31), ("int", -(2**31) - 1),
        ("unsigned", -1), ("unsigned char", 256), ("long long", 2**63), ("size_t", -1),
    ],
)  # fmt: skip
def test_a_number_that_does_not_fit_is_refused(ctype, value):
    with pytest.raises(ValueError, match=r"k: parameter 'x' .*does not fit"):
        passed(ctype, value)


def test_a_number_that_fits_arrives():
    assert passed("float", 3e38) == np.float32(3e38)
    assert passed("half", 65504.0).view("float16") == 65504
    assert np.isinf(passed("float", float("inf"))) and np.isnan(passed("float", float("nan")))
    assert passed("float", 1e-50) == 0 and passed("double", 1e300) == 1e300
    for ctype, ends in (("int", (-(2**31), 2**31 - 1)), ("unsigned char", (0, 255))):
        assert [passed(ctype, end) for end in ends] == list(ends)
    with pytest.raises(TypeError, match="takes an integer, but got 1.5"):
        passed("int", 1.5)


class Launched(kernel.Kernel):
    """A kernel that was not compiled: what becomes of arguments, and what is refused, on a GPU like an H100."""

    def __init__(
        self, source="__global__ void k(const float *x, int n, float a, unsigned char *y) {}"
    ):
        self.name, self.parameters = "k", parameters(source, "k", None)
        self._function = SimpleNamespace(
            get_attribute=lambda _: 512, shared_size_bytes=1000, num_regs=99,
            set_attribute=lambda *asked: self.asked.append(asked),
        )  # fmt: skip
        self.asked = []


@pytest.fixture
def launched(monkeypatch):
    gpu = SimpleNamespace(
        max_block=(1024, 1024, 64), max_grid=(2**31 - 1, 65535, 65535), max_threads_per_block=1024,
        shared_per_block=49152, shared_per_block_optin=232448,
    )  # fmt: skip
    attribute = SimpleNamespace(MAX_THREADS_PER_BLOCK=0, MAX_DYNAMIC_SHARED_SIZE_BYTES=8)
    monkeypatch.setattr(kernel, "device", lambda: gpu)
    monkeypatch.setattr(
        kernel, "pycuda_driver", lambda: SimpleNamespace(function_attribute=attribute)
    )
    return Launched()


def array(dtype="float32", shape=(4,), strides=None, address=4096):
    interface = {
        "typestr": np.dtype(dtype).str,
        "shape": shape,
        "strides": strides,
        "data": (address, False),
    }
    return SimpleNamespace(__cuda_array_interface__=interface)


def test_arguments_become_what_the_kernel_takes(launched):
    x, n, a, y = launched._convert((array(), 3, 2, array("uint8", address=8)))
    assert (x, n, a, y) == (4096, 3, 2.0, 8)
    assert [type(one) for one in (x, n, a)] == [np.uint64, np.int32, np.float32]


@pytest.mark.parametrize(
    ("place", "value", "error", "message"),
    [
        (0, array("float64"), TypeError, "is const float \\*|is float32, but the array is float64"),
        (0, array("int32"), TypeError, "but the array is int32"),
        (0, array(shape=(4, 4), strides=(32, 4)), ValueError, "not C-contiguous"),
        (0, array(shape=(4, 4), strides=(4, 16)), ValueError, "not C-contiguous"),
        (0, np.zeros(4, "float32"), TypeError, "host array"),
        (0, 4096, TypeError, "is a pointer, but got 4096"),
        (0, None, TypeError, "is a pointer, but got None"),
        (1, 1.5, TypeError, "takes an integer, but got 1.5"),
        (1, 2**31, ValueError, "does not fit"),
        (1, -(2**31) - 1, ValueError, "does not fit"),
        (1, "3", TypeError, "takes a number, but got a str"),
        (2, array(), TypeError, "takes a number"),
    ],
)
def test_arguments_that_it_does_not_take_are_refused(launched, place, value, error, message):
    good = [array(), 3, 2.0, array("uint8")]
    good[place] = value
    with pytest.raises(error, match=message):
        launched._convert(tuple(good))


def test_a_view_that_lies_as_c_has_it_is_taken(launched):
    """The bounds of what is refused: strides that are said and right, whole numbers as floats, the least and the largest."""
    launched._convert((array(shape=(4, 4), strides=(16, 4)), 3.0, 1, array("uint8")))
    launched._convert((array(shape=(0, 4), strides=(1, 1)), 2**31 - 1, 1, array("uint8")))
    launched._convert((array(), -(2**31), 1, array("uint8")))
    with pytest.raises(TypeError, match="takes 4 arguments, got 3"):
        launched._convert((array(), 3, 2.0))


@pytest.mark.parametrize(
    ("grid", "block", "shared", "message"),
    [
        ((1, 1, 1), (513, 1, 1), 0, "has 513 threads, but this kernel takes at most 512"),
        ((1, 1, 1), (1, 1, 65), 0, "block.z = 65, but this GPU allows 1 to 64"),
        ((1, 1, 1), (0, 1, 1), 0, "block.x = 0, but"),
        ((0, 1, 1), (1, 1, 1), 0, "grid.x = 0, but"),
        ((1, 65536, 1), (1, 1, 1), 0, "grid.y = 65536, but this GPU allows 1 to 65535"),
        ((1, 1, 1), (1, 1, 1), 231449, "1000 B static \\+ 231449 B dynamic"),
    ],
)
def test_a_launch_that_this_gpu_cannot_do_is_refused(launched, grid, block, shared, message):
    with pytest.raises(ct.LaunchError, match=message):
        launched._check_launch(grid, block, shared)


def test_a_launch_at_the_limits_goes_through(launched):
    launched._check_launch((2**31 - 1, 65535, 65535), (8, 1, 64), 0)
    launched._check_launch((70_000, 1, 1), (512, 1, 1), 48152)
    assert launched.asked == []
    launched._check_launch(
        (1, 1, 1), (1, 1, 1), 48153
    )  # more than a block has by default: asked for
    launched._check_launch((1, 1, 1), (1, 1, 1), 231448)
    assert launched.asked == [(8, 48153), (8, 231448)]


def test_a_struct_goes_where_the_kernel_looks_for_it():
    values = [np.uint64(1), np.void(b"x" * 12), np.int32(2)]
    end, parts = 0, []
    for part in kernel.placed(values, [0, 64, 128]):
        size = part.itemsize
        if isinstance(part, np.void) and part.tobytes().strip(b"\0"):
            parts.append((end, part.tobytes()))
        end += size
    assert parts == [(64, b"x" * 12)] and end == 132
    assert kernel.placed(values, [0, 8, 20]) == values
    with pytest.raises(ValueError, match="4 bytes too many precedes byte 4"):
        kernel.placed(values, [0, 4, 128])


@pytest.mark.parametrize("wrong", [(1, 2, 3, 4), (), (1, 2.5), 2.5])
def test_extents_are_one_to_three_whole_numbers(wrong):
    with pytest.raises(ct.LaunchError, match="give one to three whole numbers"):
        kernel._dim3(wrong, "grid")


def test_extents_that_are_left_out_are_1():
    assert [kernel._dim3(one, "grid") for one in (7, (7,), [7, 8], (7, 8.0, 9))] == [
        (7, 1, 1), (7, 1, 1), (7, 8, 1), (7, 8, 9),
    ]  # fmt: skip


def test_occupancy_is_of_the_threads_that_an_sm_holds(launched, monkeypatch):
    """The driver says how many blocks fit: threads of whole warps, over those of the SM."""
    asked = []

    def occupancy(blocks, function, threads, shared):
        asked.append((threads, shared.value))
        blocks._obj.value = 3
        return 0

    driver = SimpleNamespace(
        cuFuncSetAttribute=lambda *given: asked.append(given),
        cuOccupancyMaxActiveBlocksPerMultiprocessor=occupancy,
    )
    launched._function.local_size_bytes = 16
    launched._cubin, launched._symbol = b"", "k"
    gpu = SimpleNamespace(warp_size=32, max_threads_per_sm=2048)
    monkeypatch.setattr(kernel, "installed_driver", lambda: driver)
    monkeypatch.setattr(kernel, "_driver_function", lambda cubin, symbol: "function")
    monkeypatch.setattr(kernel, "device", lambda: gpu)
    found = launched.resources((20, 5), shared=48 << 10)
    assert (found.registers, found.shared_bytes, found.spill_bytes) == (99, 1000 + (48 << 10), 16)
    assert (found.block, found.blocks_per_sm) == (100, 3)
    assert found.occupancy == 3 * 4 * 32 / 2048 and asked == [(100, 48 << 10)]
    launched.resources(64, shared=(48 << 10) + 1)
    assert asked[1] == ("function", 8, (48 << 10) + 1)


def test_arguments_lie_where_the_driver_says(monkeypatch):
    """The driver writes the offset of an argument before its size."""

    def param_info(function, index, offset, size):
        offset._obj.value, size._obj.value = [(0, 128), (128, 8), (192, 64)][index.value]
        return 0

    driver = SimpleNamespace(cuFuncGetParamInfo=param_info)
    monkeypatch.setattr(kernel, "installed_driver", lambda: driver)
    monkeypatch.setattr(kernel, "_driver_function", lambda cubin, symbol: "function")
    asked = object.__new__(kernel.Kernel)
    asked._cubin, asked._symbol, asked.parameters = b"", "k", [None] * 3
    assert asked._offsets == [0, 128, 192]


def test_a_kernel_whose_parameters_nobody_knows_gets_what_it_is_given(launched):
    launched.parameters = None
    given = ("x", 3)
    assert launched._convert(given) == ["x", 3]


def test_a_handle_of_pycudas_takes_the_place_of_a_pointer():
    handle = object()
    gap, number = kernel.placed([handle, np.int32(2)], [0, 12])[1:]
    assert (gap.itemsize, number) == (4, 2)


def test_what_the_driver_says_of_no_occupancy_is_told(launched, monkeypatch):
    driver = SimpleNamespace(cuOccupancyMaxActiveBlocksPerMultiprocessor=lambda *given: 98)
    launched._cubin, launched._symbol = b"", "k"
    monkeypatch.setattr(kernel, "installed_driver", lambda: driver)
    monkeypatch.setattr(kernel, "_driver_function", lambda cubin, symbol: "function")
    monkeypatch.setattr(kernel, "device", lambda: SimpleNamespace(warp_size=32))
    with pytest.raises(ct.LaunchError, match="k.*98"):
        launched.resources(256)


@pytest.mark.parametrize("statuses", [(0, 0), (200, 0), (0, 500)])
def test_a_kernel_is_loaded_once_more_for_the_driver(monkeypatch, statuses):
    """Its code as a module, then the function of its name in that."""

    def load(module, cubin):
        assert cubin == b"code"
        module._obj.value = 77
        return statuses[0]

    def function(found, module, name):
        assert (module.value, name) == (77, b"_Z1kv")
        found._obj.value = 99
        return statuses[1]

    driver = SimpleNamespace(cuModuleLoadData=load, cuModuleGetFunction=function)
    monkeypatch.setattr(kernel, "installed_driver", lambda: driver)
    load_again = kernel._driver_function.__wrapped__
    if any(statuses):
        with pytest.raises(ct.LaunchError, match=f"_Z1kv.*{max(statuses)}"):
            load_again(b"code", "_Z1kv")
    else:
        assert load_again(b"code", "_Z1kv").value == 99


@pytest.fixture
def told(book, monkeypatch):
    """What a recording is told of the kernels that are made, none of which is compiled: (files, facts)."""
    found = []
    book.file("a/k.cu", '#include "parts.cuh"\n__global__ void k() {}\n')
    book.file("a/parts.cuh", "#define N 1\n")
    monkeypatch.setattr(kernel, "_compile", lambda *given: b"code")
    monkeypatch.setattr(kernel.instances, "find_symbol", lambda cubin, source, name, label: "k")
    monkeypatch.setattr(kernel.code, "digest", lambda cubin, symbol: f"of {cubin} {symbol}")
    monkeypatch.setattr(kernel, "device", lambda: SimpleNamespace(arch="sm_90"))
    monkeypatch.setattr(kernel.ran, "following", lambda: True)
    monkeypatch.setattr(kernel.ran, "text", lambda path: found.append(path.name))
    monkeypatch.setattr(
        kernel.ran,
        "kernel",
        lambda files, **facts: found.append((sorted(one.name for one in files), facts)),
    )
    return found


def test_a_recording_is_told_of_a_kernel_in_a_file(told, book):
    made = kernel.Kernel("a/k.cu", "k", {"N": 3}, [f"-I{book.root}/b"], load=False)
    facts = {"file": "a/k.cu", "name": "k", "defines": ["N=3"], "options": ["-Iexamples/b"]}
    facts |= {"arch": "sm_90", "code": "of b'code' k"}
    assert told == [(["k.cu", "parts.cuh"], facts)]
    assert "__global__" in made.source and told[1:] == ["k.cu"], "whoever asks may see comments"


def test_a_recording_is_told_of_a_kernel_in_a_string(told):
    """By its hash, and by what it includes; under a name that stands for no file."""
    text = '#include "a/parts.cuh"\n__global__ void k() {}\n'
    made = kernel.Kernel(text, "k", arch="sm_80", load=False)
    ((files, facts),) = told
    assert (files, facts["includes"]) == (["parts.cuh"], ["a/parts.cuh"])
    assert (facts["arch"], facts["text"]) == ("sm_80", hashlib.sha256(text.encode()).hexdigest())
    assert "file" not in facts and made.label == "inline.cu" and made.source == text
    assert len(told) == 1
