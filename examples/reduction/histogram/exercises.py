# ---
# jupyter:
#   cudatut:
#     requires: sm_75
#     exercises:
#       1:
#         title: {en: "The largest float", zh: "最大的 float"}
#         level: medium
#         minutes: 25
#         task:
#           en: >-
#             There is no `atomicMax` for floats. Use the one for `unsigned`: find a mapping of the bits,
#             `key_of`, such that larger floats have larger keys, and undo it in `bits_of`. Read as an
#             integer, the bits of positive floats have the order of the numbers; those of negative floats
#             have the opposite order, and their highest bit is set. `__float_as_uint(x)` gives the bits of
#             x. Then let each warp find its largest key first.
#           zh: >-
#             float 没有 `atomicMax`。请用 `unsigned` 的 `atomicMax`：找出一个位变换 `key_of`，float 越大，键也越大，
#             再在 `bits_of` 里变换回去。把各位当作整数来看，正数的次序与数值一致；负数的次序恰好相反，而且最高位是 1。
#             `__float_as_uint(x)` 返回 x 的各位。写好之后，再让每个线程束先求出束内最大的键。
#         fails: "n=31"
#       2:
#         title: {en: "More values than copies have room for", zh: "值太多，放不下那么多份"}
#         level: hard
#         minutes: 30
#         task:
#           en: >-
#             The values are 16-bit numbers below 1024 now. 32 copies of the counters take 128 KiB, which
#             H100 and A100 have and many GPUs lack. With fewer copies, a lane keeps to copy
#             `lane % copies`, and counter (value, copy) is word `copies * value + copy`. First predict
#             the passes of a warp for random values and 1, 2, 4, 8, 16 and 32 copies by a simulation. Then
#             write the kernel. The check runs it with the most copies that fit your GPU.
#           zh: >-
#             现在的值是小于 1024 的 16 位整数。32 份计数器要占 128 KiB，H100 和 A100 放得下，许多 GPU 放不下。份数少的时候，
#             每个 lane 就用第 `lane % copies` 份，（值，份）的计数器是第 `copies * 值 + 份` 号字。先用模拟预测：
#             值是随机的，份数取 1、2、4、8、16、32 时，一个线程束各要几趟；再写出 kernel。检查程序会用你的 GPU 放得下的最多份数运行它。
#         fails: "random, n=1"
# ---
# %% stub-1
largest_key = ct.Kernel(
    """
__device__ unsigned key_of(float x) {
  return __float_as_uint(x);  // yours
}

__global__ void largest_key(const float* in, unsigned* out, int n) {
  int i = blockIdx.x * 256 + threadIdx.x;
  if (i < n) atomicMax(out, key_of(in[i]));  // yours: one atomic per warp
}
""",
    "largest_key",
)


def bits_of(key):
    """The bits of the float that has this key."""
    return key  # yours


# %% stub-2
histogram_copies = ct.Kernel(
    """
__global__ void histogram_copies(const unsigned short* in, unsigned* counts,
                                 int n, int copies) {
  extern __shared__ unsigned mine[];  // 1024 * copies words
  // yours
}
""",
    "histogram_copies",
)
