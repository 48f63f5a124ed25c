"""Kernels that are templates, without a GPU: their parameters, the source that is compiled, the names in the cubin."""

import ctypes
import re
import struct

import numpy as np
import pytest

from cudatut.errors import KernelCompileError, LaunchError
from cudatut.gpu import instances, kernel, profile
from cudatut.gpu.signature import kernels, parameters, split_name

SOURCE = """
// template <int N> __global__ void commented_out(int a)
struct alignas(64) Map { char bytes[128]; };
template <typename T> struct Pair { T a, b; };
template <int BM, int BN = 2 * 4, bool FAST = true>
__global__ void __launch_bounds__(BM * (1 + 1))
    gemm(const float *__restrict__ a, const float *__restrict__ b, float *c, int m) {
  if (FAST) c[m] = a[m] * BM + b[m] * BN;
}
template <class T = float, typename U = T>
static __global__ void convert(const __grid_constant__ Map map, const T *x, U *y, T factor, Pair<T> two) {
  y[0] = static_cast<U>(x[0] * factor + map.bytes[3] + two.a);
}
namespace tiles {
template <int N> __global__ void gemm(float *x) { x[0] = N; }
}
extern "C" __global__ void plain(float *x) { x[0] = 1; }
"""


def types(name, **defines):
    return [(p.name, p.pointer, p.dtype) for p in parameters(SOURCE, name, defines)]


def test_a_name_is_split_and_made_normal():
    assert split_name("gemm") == ("gemm", None)
    assert split_name("gemm<>") == ("gemm", [])
    assert split_name("gemm< 128,Pair<int, 2>, (3 > 2) >")[1][:2] == ["128", "Pair<int, 2>"]
    assert instances.normal("gemm<128,256,  16>") == "gemm<128, 256, 16>"
    assert instances.normal("gemm") == "gemm"


def test_template_parameters_are_looked_up_under_their_values():
    assert [p[2] for p in types("gemm<128>")] == ["float32", "float32", "float32", "int32"]
    assert types("convert<double, int>") == [
        ("map", False, None),
        ("x", True, "float64"),
        ("y", True, "int32"),
        ("factor", False, "float64"),
        ("two", False, None),
    ]
    assert [p[2] for p in types("convert<>")][1:4] == ["float32", "float32", "float32"]
    assert [p[2] for p in types("convert<half>")][1:4] == ["float16", "float16", "float16"]
    assert [p[2] for p in types("convert<T>", T="int")][1:4] == ["int32", "int32", "int32"]
    assert types("convert<float4, unsigned int>")[1:4] == [
        ("x", True, "float32"),
        ("y", True, "uint32"),
        ("factor", False, None),
    ]
    assert types("convert<const float *>")[3] == ("factor", True, "float32")
    assert parameters(SOURCE, "other<3>") is None


def test_what_a_source_defines_is_listed():
    assert kernels(SOURCE) == [
        "convert<class T = float, typename U = T>",
        "gemm<int BM, int BN = 2 * 4, bool FAST = true>",
        "gemm<int N>",
        "plain",
    ]
    assert kernels("__global__ void __launch_bounds__(f(2, 3)) k(int a) { if (a) {} }") == ["k"]


def test_the_source_that_is_compiled():
    assert instances.assemble("a\n\n", "k") == "a\n\n"
    assert instances.assemble("a\n\n", "k<1,2>").splitlines() == [
        "a",
        "template __global__ decltype(k<1, 2>) k<1, 2>;",
    ]
    assert instances.wrapped("__global__ void k() {}", "k")
    assert not instances.wrapped("template <int N> __global__ void k() {}", "k<1>")
    assert not instances.wrapped("template <int N> __global__ void k() {}", "k")
    assert not instances.wrapped(SOURCE, "plain")


def test_instances_that_a_file_names():
    text = (
        "// @rung kernel=gemm<128,256> block=256\n// @instance gemm<64, 8>\n// @instance k<float>\n"
    )
    assert instances.declared(text + "// @instance gemm<128, 256>\n") == [
        "gemm<128, 256>",
        "gemm<64, 8>",
        "k<float>",
    ]
    assert instances.declared("// @rung kernel=gemm block=256") == []
    assert instances.declared("// @rung block=256 kernel=gemm<>") == ["gemm<>"]


def test_a_template_is_profiled_by_its_plain_name():
    names = ("k", "gemm<128, f::g<3>>", "tiles::gemm<1>", "regex:a<b")
    assert [profile.function_name(name) for name in names] == ["k", "gemm", "gemm", "regex:a<b"]


class Struct(ctypes.Structure):
    _fields_ = (("a", ctypes.c_int), ("b", ctypes.c_double))


@pytest.mark.parametrize(
    ("value", "size"),
    [
        (b"x" * 128, 128),
        (bytearray(12), 12),
        (Struct(1, 2.0), 16),
        (np.zeros((), [("a", "i4"), ("b", "f8")]), 12),
        (np.zeros(3, [("a", "i4")])[1], 4),
        (np.arange(4, dtype="float32"), 16),
        (np.void(b"abcd"), 4),
    ],
)
def test_a_struct_becomes_its_bytes(value, size):
    made = kernel.as_struct(value, str)
    assert type(made) is np.void and made.dtype.names is None and made.itemsize == size
    assert bytes(memoryview(made)) == memoryview(value).tobytes()


def test_what_is_no_struct_stays():
    handle = object()
    assert kernel.as_struct(handle, str) is handle and kernel.as_struct(3, str) == 3
    assert type(kernel.as_struct(np.int32(3), str)) is np.int32
    with pytest.raises(ValueError, match="parameter 's' takes a struct, but got no bytes"):
        kernel.as_struct(b"", lambda: "k: parameter 's'")


def test_numbers_that_pycuda_does_not_know_travel_as_their_bytes():
    assert type(kernel.as_launched(np.bool_(True))) is np.uint8
    assert kernel.as_launched(np.float16(1)) == 0x3C00
    assert type(kernel.as_launched(np.float32(1))) is np.float32


def test_gaps_bring_arguments_to_where_the_kernel_looks():
    # A tensor map begins at a multiple of 128, but the parameters of sm_90 at 0x210.
    map_, pointer, number = np.void(bytes(128)), np.uint64(0), np.int32(0)
    arranged = kernel.placed([map_, map_, pointer, number], [0x70, 0xF0, 0x170, 0x178])
    assert [value.itemsize for value in arranged] == [0x70, 128, 128, 8, 4]
    assert kernel.placed([number, pointer], [0, 8])[0] is number
    with pytest.raises(ValueError, match="124 bytes too many precedes byte 4"):
        kernel.placed([map_, number], [0, 4])


@pytest.fixture(scope="module")
def compiled(compiler, tmp_path_factory):
    """A function (source, name, arch='sm_75') -> cubin, or nvcc's words where it refuses."""

    def run(source, name, arch="sm_75"):
        text = f'#line 1 "inline.cu"\n{instances.assemble(source, name)}'
        if instances.wrapped(source, name):
            text = f'extern "C" {{\n{text}\n}}\n'
        folder = tmp_path_factory.mktemp("instance")
        done = compiler(text, ["--cubin", "-lineinfo", "-arch", arch], folder, output=True)
        return done.log if done.status else done.output

    return run


def find(compiled, name, source=SOURCE, **more):
    return instances.find_symbol(compiled(source, name, **more), source, name, "inline.cu")


@pytest.mark.parametrize("arch", ["sm_75", "sm_80", "sm_90", "sm_90a", "sm_120"])
def test_an_instance_is_found_for_each_architecture(compiled, arch):
    assert find(compiled, "gemm<128>", arch=arch) == "_Z4gemmILi128ELi8ELb1EEvPKfS1_Pfi"


@pytest.mark.parametrize(
    ("name", "begins"),
    [
        ("convert<>", "_ZL?7convertIffE"),
        ("convert<double, int>", "_ZL?7convertIdiE"),
        ("gemm<-3, 4, false>", "_Z4gemmILin3ELi4ELb0EE"),
        ("tiles::gemm<5>", "_ZN5tiles4gemmILi5EE"),
        ("plain", "plain$"),
    ],
)
def test_the_instance_is_told_from_the_other_kernels(compiled, name, begins):
    assert re.match(begins, find(compiled, name))


def test_tensor_maps_need_nothing_more(compiled):
    source = """#include <cuda.h>
    template <int N> __global__ void load(const __grid_constant__ CUtensorMap map, float *x) {
      x[N] = reinterpret_cast<const char *>(&map)[3];
    }"""
    for arch in ("sm_75", "sm_90"):
        assert find(compiled, "load<3>", source, arch=arch).startswith("_Z4loadILi3EEv")


def test_an_instance_beside_another_of_its_template_is_refused(compiled):
    source = """
    template <int N> __global__ void k(float *x) { x[N] = 0; }
    template __global__ void k<8>(float *);
    template <int N> __global__ void kk(float *x) { x[N] = 0; }
    """
    assert find(compiled, "kk<8>", source) == "_Z2kkILi8EEvPf"
    with pytest.raises(KernelCompileError, match=r"which of its functions .*'_Z1kILi2E"):
        find(compiled, "k<2>", source)


def test_a_plain_kernel_that_is_not_there(compiled):
    with pytest.raises(KernelCompileError, match=r"no kernel named 'k'; it defines \['scale'\]"):
        find(compiled, "k", "__global__ void scale(float *x) { x[0] = 2; }")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("gem<128>", r'identifier "gem" is undefined'),
        ("gemm<1, 2, true, 4>", "cannot determine which instance"),
    ],
)
def test_what_nvcc_says_of_a_wrong_instance_shows_the_line(compiled, name, said):
    whole = instances.assemble(SOURCE, name)
    text = kernel.explain_compile_error(compiled(SOURCE, name), whole, "inline.cu")
    last = len(whole.splitlines())
    assert f"inline.cu, line {last}: error: " in text and said in text
    assert f"{last:4} | template __global__ decltype({name}) {name};" in text


def test_a_kernel_knows_its_name_its_symbol_and_its_arguments(compiled, monkeypatch):
    monkeypatch.setattr(
        kernel.Kernel, "_compile", lambda self, flags, arch: compiled(self.source, self.name)
    )
    monkeypatch.setattr(kernel.Kernel, "_load", lambda self: self.symbol)
    offsets = kernel.Kernel._offsets
    monkeypatch.setattr(kernel.Kernel, "_offsets", [0, 128, 136, 144, 152])
    convert = kernel.Kernel(SOURCE, "convert<double,int>")
    assert convert.name == "convert<double, int>" and convert.symbol == convert._function
    assert re.match("_ZL?7convertIdiE", convert.symbol)
    with pytest.raises(AttributeError):
        convert.symbol = "other"
    x, y = object(), object()
    map_, *others, pair = convert._convert((bytes(128), x, y, 2, (ctypes.c_double * 3)(1, 2)))
    assert type(map_) is np.void and map_.itemsize == 128 and pair.itemsize == 24
    assert others == [x, y, np.float64(2)] and type(others[2]) is np.float64
    with pytest.raises(TypeError, match=r"convert<double, int>\(Map map, double \*x, .*got 1"):
        convert._convert((bytes(128),))
    monkeypatch.setattr(kernel.Kernel, "_offsets", offsets)
    monkeypatch.setattr(kernel, "_driver_function", lambda cubin, name: None)
    monkeypatch.setattr(kernel, "installed_driver", object)  # which does not tell
    with pytest.raises(LaunchError, match="convert<double, int> takes a struct"):
        convert._convert((bytes(128), x, y, 2, (ctypes.c_double * 3)(1, 2)))


def test_a_compile_error_ends_with_what_is_wrong_with_the_name(monkeypatch):
    def refuse(source, wrap, label, flags, arch, folder):
        raise KernelCompileError(f"nvcc could not compile {label}:\n  line 2: {source!r} {wrap}")

    monkeypatch.setattr(kernel, "_compile", refuse)
    with pytest.raises(KernelCompileError, match=r"False\ninline.cu defines \['gemm<int N>'\]"):
        kernel.Kernel("template <int N> __global__ void gemm() {}", "gem<1>")
    for other in ("__global__ void gemm() {}", "\n__global__ void gemm() {}"):
        with pytest.raises(KernelCompileError, match=r"True\Z"):
            kernel.Kernel(other, "gemm")


def test_the_code_of_a_function_is_found_in_an_elf_file():
    names = b"\0.text.k\0.shstrtab\0"
    code = b"\x01\x02\x03\x04"
    body = names + code
    sections = [
        (0, 0, 0, 0, 0, 0),
        (1, 1, 0, 0, 64 + len(names), len(code)),
        (9, 3, 0, 0, 64, len(names)),
    ]
    head = bytearray(64)
    struct.pack_into("<Q", head, 0x28, 64 + len(body))
    struct.pack_into("<HHH", head, 0x3A, 64, 3, 2)
    table = b"".join(struct.pack("<IIQQQQ", *one).ljust(64, b"\0") for one in sections)
    elf = bytes(head) + body + table
    assert instances.kernel_symbols(elf) == ["k"] and instances.code_of(elf, "k") == code
    with pytest.raises(KeyError):
        instances.code_of(elf, "other")
