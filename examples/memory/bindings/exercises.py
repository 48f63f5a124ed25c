# ---
# jupyter:
#   cudatut:
#     requires: sm_75
#     exercises:
#       1:
#         title: {en: "OpenCL's launch in CUDA", zh: "把 OpenCL 的启动改成 CUDA 的"}
#         level: easy
#         minutes: 10
#         task:
#           en: >-
#             OpenCL starts a kernel with the number of threads in each dimension
#             and the size of a work-group. Write `launch_of(sizes, locals_)`: the
#             grid and the block for CUDA. Where a size is no multiple, the last
#             block is only partly needed; the check has such a case, and counts
#             the threads inside the sizes.
#           zh: >-
#             OpenCL 启动 kernel 时，给的是每个维度的线程总数和一个工作组的大小。写
#             `launch_of(sizes, locals_)`：返回 CUDA 的网格和线程块。总数不是整数倍时，
#             最后一个线程块只用到一部分；检查程序里有这样的情形，它会数一数范围之内的线程。
#         fails: "one dimension"
#       2:
#         title: {en: "When does a library pay?", zh: "编译成库划算吗"}
#         level: easy
#         minutes: 10
#         task:
#           en: >-
#             Two ways to call a kernel: each takes some time before the first call
#             and some for each call. Write `pays_after(before_a, call_a, before_b,
#             call_b)`: the smallest number of calls with which way b takes less
#             time in all than way a, or None if there is none. All times are in
#             microseconds, and whole numbers.
#           zh: >-
#             调用 kernel 有两种方式：第一次调用之前各要一些时间，每次调用又各要一些时间。写
#             `pays_after(before_a, call_a, before_b, call_b)`：至少调用多少次，方式 b 的总
#             时间才比方式 a 少？永远不会就返回 None。时间都以微秒为单位，都是整数。
#         fails: "numbers of calls"
#       3:
#         title: {en: "A C function for Python", zh: "让 Python 调用 C 函数"}
#         level: medium
#         minutes: 20
#         task:
#           en: >-
#             The library has `saxpy_of_host(float a, const float* x, float* y,
#             int n)`, which returns 0 or the number of an error, and
#             `saxpy_error(int)`, which returns its name as `const char*`. Write
#             `saxpy_of_host(library, a, x, y)` for arrays of NumPy: it declares
#             both functions, refuses with a ValueError what is not float32, not
#             contiguous or of two lengths, and raises a RuntimeError with the
#             name of an error.
#           zh: >-
#             库里有 `saxpy_of_host(float a, const float* x, float* y, int n)`，返回 0 或
#             错误号；还有 `saxpy_error(int)`，返回错误的名字，类型是 `const char*`。写
#             `saxpy_of_host(library, a, x, y)`，参数是 NumPy 数组：声明这两个函数的类型；
#             数组不是 float32、不连续或长度不同，就抛出 ValueError；函数出错就抛出
#             RuntimeError，带上错误的名字。
#         fails: "are wrong"
# ---


# %% stub-1
def launch_of(sizes, locals_):
    """(grid, block), each with three numbers."""
    return sizes, locals_  # yours


# %% stub-2
def pays_after(before_a, call_a, before_b, call_b):
    """Calls after which b has taken less time than a; None for never."""
    return 1  # yours


# %% stub-3
def saxpy_of_host(library, a, x, y):
    """y = a * x + y, of arrays of NumPy, by the C function."""
    # yours: argtypes, restype, what to refuse, the call, its error
