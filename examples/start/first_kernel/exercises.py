# ---
# jupyter:
#   cudatut:
#     requires: sm_75
#     exercises:
#       1:
#         title: {en: "a times x plus y", zh: "a 乘 x 加 y"}
#         level: easy
#         minutes: 10
#         task:
#           en: >-
#             Write the kernel `axpy`. Its one thread stores `a * x[i] + y[i]` in `out[i]` for all n elements.
#             The check runs it with several lengths and compares every element with NumPy's result.
#           zh: >-
#             编写 kernel `axpy`：用一个线程，对全部 n 个元素，把 `a * x[i] + y[i]` 写入 `out[i]`。
#             检查程序会用几种长度运行这个 kernel，并把每个元素与 NumPy 的结果比较。
#         fails: "never written"
#       2:
#         title: {en: "Fetch the tail", zh: "只取末尾"}
#         level: easy
#         minutes: 10
#         task:
#           en: >-
#             `d_x` is an array of n floats on the GPU. Complete `tail`: it returns a NumPy array with the last k of
#             them, and copies only these k. You need no kernel. `int(d_x)` is the address of element 0, and
#             addresses count bytes.
#           zh: >-
#             `d_x` 是 GPU 上的数组，有 n 个 float。补全 `tail`：返回一个 NumPy 数组，内容是其中最后 k 个元素，
#             并且只复制这 k 个。不需要 kernel。`int(d_x)` 是第 0 个元素的地址，地址以字节为单位。
#         fails: "check tail"
# ---
# %% stub-1
module = SourceModule("""
__global__ void axpy(float a, const float *x, const float *y, float *out,
                     int n) {
  // yours
}
""")
axpy = module.get_function("axpy")


# %% stub-2
def tail(d_x, n, k):
    """The last k of the n floats at d_x, as a NumPy array."""
    out = np.zeros(k, np.float32)
    cuda.memcpy_dtoh(out, int(d_x))  # yours: this copies the first k
    return out
