"""The machine code of a kernel has a digest: what a launch does not notice leaves it, what it could notice does not.

Compiled by the real nvcc.
"""

import struct

import pytest

from cudatut.fingerprint import code


@pytest.fixture(scope="session")
def digest(compiler, tmp_path_factory):
    """Call it with CUDA C++: the digest of its kernel `k`, or of another."""
    work = tmp_path_factory.mktemp("code")

    def compiled(text: str, symbol: str = "k", *flags: str) -> str:
        arch = next((flag for flag in flags if flag.startswith("sm_")), "sm_90")
        flags = [flag for flag in flags if flag != arch]
        done = compiler(text, ["--cubin", "-lineinfo", "-arch", arch, *flags], work, output=True)
        assert done.status == 0, done.log
        assert symbol in code.digests(done.output)
        assert code.digests(done.output)[symbol] == code.digest(done.output, symbol)
        return code.digest(done.output, symbol)

    return compiled


KERNEL = """
__device__ __noinline__ float helped(float x, int n) { return x * n; }
__constant__ float table[4] = {1, 2, 3, 4};
__device__ float kept;
extern "C" __global__ void __launch_bounds__(128) k(float *x, int n) {
  __shared__ float s[128];
  int i = threadIdx.x;
  s[i] = helped(x[i] + table[n & 3] + kept, n);
  __syncthreads();
  x[i] = s[i ^ 1];
}
"""


@pytest.mark.parametrize(
    ("was", "now"),
    [
        ("float *x, int n", "float *out, int many"),
        ("  int i =", "\n\n  // The thread's place.\n  int i ="),
        ("int i = threadIdx.x;", "int i;\n  i = (threadIdx.x);"),
        ("helped", "a_longer_name_for_the_helper"),
        ("table", "words"),
        ("kept", "left"),
        ("s[", "tile["),
        ("void __launch_bounds__(128) k", "void __launch_bounds__(2 * 64) k"),
        ("extern", "#define UNUSED 3\nextern"),
        ("extern", "__device__ __forceinline__ int unused(int a) { return a + 1; }\nextern"),
        # Another kernel of the file moves this one's symbols and sections.
        ("extern", 'extern "C" __global__ void before(int *y) { y[1] = 2; }\nextern'),
        ("__constant__", 'extern "C" __global__ void z() {}\n__constant__'),
    ],
)
def test_what_a_launch_does_not_notice(digest, was, now):
    assert was in KERNEL
    text = KERNEL.replace(was, now)
    if "float *out" in now:
        text = text.replace("n)", "many)").replace("n &", "many &").replace("x[i]", "out[i]")
        text = text.replace("float x, int many", "float x, int n").replace("x * many", "x * n")
    assert digest(text) == digest(KERNEL)


@pytest.mark.parametrize(
    ("was", "now"),
    [
        ("i ^ 1", "i ^ 2"),  # code
        ("x * n", "x * n + 1"),  # of a function that it calls
        ("{1, 2, 3, 4}", "{1, 2, 3, 5}"),  # constants
        ("float kept;", "float kept = 3;"),
        ("float s[128]", "float s[256]"),  # memory
        ("__shared__ float s", "__shared__ __align__(1024) float s"),
        ("__launch_bounds__(128)", "__launch_bounds__(256)"),  # what the driver allows
        ("__launch_bounds__(128)", "__cluster_dims__(2)"),
        ("float *x, int n)", "float *x, int n, int more)"),  # parameters
        ("+ kept", "+ table[0]"),
    ],
)
def test_what_a_launch_could_notice(digest, was, now):
    assert was in KERNEL
    assert digest(KERNEL.replace(was, now, 1)) != digest(KERNEL)


def test_another_gpu_and_other_flags_are_other_code(digest):
    assert len({digest(KERNEL), digest(KERNEL, "k", "sm_80"), digest(KERNEL, "k", "sm_120")}) == 3
    product = KERNEL.replace("x * n", "x * n + x")
    assert digest(product, "k", "-fmad=false") != digest(product)


def test_which_of_two_strings_is_printed(digest):
    text = '#include <cstdio>\nextern "C" __global__ void k(int i) { if (i) printf("%s"); else printf("%s"); }'
    assert digest(text % ("one\\n", "two\\n")) != digest(text % ("two\\n", "one\\n"))


def test_which_of_two_variables_is_read(digest):
    text = '__device__ float a, b; extern "C" __global__ void k(float *x) { *x = %s; }'
    assert digest(text % "a") != digest(text % "b")


def test_a_template_and_its_name(digest):
    """An instance has a mangled name, which its namespace and its spelling change, and the code does not."""
    one = "template <int N> __global__ void k(float *x) { x[N] = N; }\ntemplate __global__ void k<3>(float *);"
    other = f"namespace tiles {{ {one.replace('void k', 'void kernel')} }}"
    assert digest(one, "_Z1kILi3EEvPf") == digest(other, "_ZN5tiles6kernelILi3EEEvPf")
    assert digest(one, "_Z1kILi3EEvPf") != digest(one.replace("3", "4"), "_Z1kILi4EEvPf")


def test_an_attribute_of_two_bytes_lies_in_its_head():
    """Such as the most registers: 255, and 511 is another number."""
    sized = struct.pack("<BBH4s", 4, 0x2F, 4, b"\1\2\3\4")
    head = struct.pack("<BBH", 3, 0x1B, 0x1FF)
    assert list(code._attributes(head + sized + head)) == [
        (0x1B, b"\xff\1"), (0x2F, b"\1\2\3\4"), (0x1B, b"\xff\1"),
    ]  # fmt: skip


def test_a_kernel_that_is_not_there(compiler, tmp_path):
    done = compiler(KERNEL, ["--cubin", "-arch", "sm_90"], tmp_path, output=True)
    with pytest.raises(KeyError):
        code.digest(done.output, "other")
    assert list(code.digests(done.output)) == ["k"]
