"""The parameters of a kernel, read from its source."""

import pytest

from cudatut.gpu.signature import parameters

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
