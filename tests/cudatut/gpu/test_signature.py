"""The parameters of a kernel, read from its source."""

import pytest

from cudatut.gpu.signature import Parameter, kernels, parameters, split_name

SOURCE = """
// __global__ void k(int commented_out)
template <int N> struct S {};
extern "C" __global__ void __launch_bounds__(256)
    k(const float *__restrict__ x, float4* y, /* bytes */ size_t n, unsigned int m, T a, long long int b,
      const __grid_constant__ S<3> s, half h, unsigned char c[], bool f) {}
"""


def test_parameters_are_read_from_the_source():
    found = parameters(SOURCE, "k", {"T": "double"})
    assert [(p.name, p.pointer, p.dtype) for p in found] == [
        ("x", True, "float32"),
        ("y", True, "float32"),
        ("n", False, "uint64"),
        ("m", False, "uint32"),
        ("a", False, "float64"),
        ("b", False, "int64"),
        ("s", False, None),
        ("h", False, "float16"),
        ("c", True, "uint8"),
        ("f", False, "bool"),
    ]


@pytest.mark.parametrize(
    ("vector", "element"),
    [
        ("char4", "int8"), ("uchar4", "uint8"), ("short2", "int16"), ("ushort2", "uint16"),
        ("int3", "int32"), ("uint4", "uint32"), ("longlong2", "int64"), ("ulonglong2", "uint64"),
        ("float4", "float32"), ("double2", "float64"),
    ],
)  # fmt: skip
def test_a_vector_type_is_an_array_of_its_element(vector, element):
    (found,) = parameters(f"__global__ void k({vector} *x) {{}}", "k")
    assert (found.pointer, found.dtype) == (True, element)


def test_parameters_of_no_such_kernel_and_of_none():
    assert parameters(SOURCE, "other") is None
    assert parameters("__global__ void k() {}", "k") == []
    assert parameters("__global__ void k(void) {}", "k") == []


@pytest.mark.parametrize(
    ("ctype", "dtype"),
    [(f"{sign}int{bits}_t", f"{sign}int{bits}") for sign in ("", "u") for bits in (8, 16, 32, 64)]
    + [
        ("bool", "bool"), ("char", "int8"), ("signed char", "int8"), ("unsigned char", "uint8"),
        ("short", "int16"), ("unsigned short", "uint16"), ("int", "int32"), ("unsigned", "uint32"),
        ("long long", "int64"), ("unsigned long long", "uint64"),
        ("unsigned long long int", "uint64"), ("ptrdiff_t", "int64"),
        # What NumPy has no type for travels as its bits.
        ("__half", "float16"), ("__nv_bfloat16", "uint16"), ("__nv_fp8_e4m3", "uint8"),
        ("__nv_fp8_e5m2", "uint8"),
    ],
)  # fmt: skip
def test_a_number_has_the_type_of_numpy_that_is_as_wide(ctype, dtype):
    (found,) = parameters(f"__global__ void k(const {ctype} x) {{}}", "k")
    assert found == Parameter("x", ctype, False, dtype)
    (found,) = parameters(f"__global__ void k({ctype} const *x) {{}}", "k")
    assert (found.pointer, found.dtype) == (True, dtype)


def test_several_numbers_are_passed_as_a_struct_is():
    (found,) = parameters("__global__ void k(float4 x) {}", "k")
    assert found == Parameter("x", "float4", False, None)


@pytest.mark.parametrize(
    ("name", "types"),
    [
        ("k<float, 4>", [(True, "float32"), (False, "float32"), (False, "int32")]),
        ("k<float, 4, half>", [(True, "float32"), (False, "float16"), (False, "int32")]),
        ("k<double *, 4>", [(True, "float64"), (True, "float64"), (False, "int32")]),
        ("k<WORD, 4>", [(True, "uint16"), (False, "uint16"), (False, "int32")]),
        ("k", [(True, None), (False, None), (False, "int32")]),
    ],
)
def test_a_type_that_a_template_takes_counts_as_its_value(name, types):
    """One with a default as that where it is left out, which may be another parameter; an alias as what it stands for."""
    source = """
    template <class Other> __device__ Other helper(Other x) { return x; }
    using Count = int;
    template <typename T, int N, class Out = T> __global__ void k(T *x, Out y, Count n) {}
    """
    found = parameters(source, name, {"WORD": "unsigned short"})
    assert [(one.pointer, one.dtype) for one in found] == types


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("__global__ void b(int n) {} __global__ void a() {}", ["a", "b"]),
        ("template <int N,  bool fast = true>\n__global__ void k() {}", ["k<int N, bool fast = true>"]),
        ("template <> __global__ void k<3>() {}", []),
        ("template <int N> struct S {};\n__global__ void k() {}", ["k"]),
        ("__global__ void __launch_bounds__(32 * (2)) k() {}", ["k"]),
        ("// __global__ void k() {}\n/* __global__ void l() {} */", []),
        ("__device__ void f() {}", []),
    ],
)  # fmt: skip
def test_the_kernels_that_a_source_defines(source, found):
    assert kernels(source) == found


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("k", ("k", None)),
        ("k<>", ("k", [])),
        (" tiles::k < 3, f<1, 2>, (4 > 3), g(5, 6)> ", ("tiles::k", ["3", "f<1, 2>", "(4 > 3)", "g(5, 6)"])),
    ],
)  # fmt: skip
def test_a_name_and_the_arguments_of_its_template(name, parts):
    assert split_name(name) == parts


def test_a_kernel_in_a_namespace_is_found_by_its_whole_name():
    source = "namespace tiles { __global__ void k(float *x) {} }\n__global__ void kk(int n) {}"
    (found,) = parameters(source, "tiles::k")
    assert found.name == "x" and parameters(source, "tile") is None
