# ---
# jupyter:
#   cudatut:
#     requires: sm_80
#     exercises:
#       1:
#         title: {en: "A share of your choice", zh: "自己定占比"}
#         level: medium
#         minutes: 30
#         task:
#           en: >-
#             The loop of this kernel has 16 independent FMAs. Add `OTHERS` integer instructions that do not depend
#             on them, and let `out` need their results, or the compiler drops them. The check compiles the kernel
#             with 0, 4 and 8 others, compares the sums, and counts the instructions of a turn. Then read the share
#             of FMAs with `loops.share`, predict the rate and measure it: does every other instruction cost exactly
#             one slot?
#           zh: >-
#             这个 kernel 的循环里有 16 条互不依赖的 FMA。请加上 `OTHERS` 条与这些 FMA 无关的整数指令，并让 `out`
#             用到这些指令的结果，否则编译器会把这些指令删掉。检查程序分别用 0、4、8 条编译，比较总和，数出一圈的指令。
#             然后用 `loops.share` 读出 FMA 的占比，预测速率，再测量：每多一条别的指令，是不是正好多用一个发射槽？
#         fails: "others in a turn"
#       2:
#         title: {en: "How far ahead", zh: "提前了多远"}
#         level: medium
#         minutes: 20
#         task:
#           en: >-
#             Write `distances(turn)`: for every `LDS` of a main loop that sets a scoreboard, the number of
#             instructions from it to the first that waits for that board. The loop goes round. An instruction `i`
#             has `i.op`, `i.sets` (a board or None) and `i.waits` (a tuple of boards). Compare `vectorized`,
#             `conflict_free` and `double_buffer`.
#           zh: >-
#             写出 `distances(turn)`：对主循环里每一条占用记分板的 `LDS`，数出到第一条等待这块记分板的指令为止隔了
#             多少条；循环首尾相接。指令 `i` 有 `i.op`、`i.sets`（一块记分板或 None）和 `i.waits`（记分板的元组）。
#             比较 `vectorized`、`conflict_free` 和 `double_buffer`。
#         fails: "a made-up turn"
# ---
# %% stub-1
MIX = """
__global__ void mix(float* out, int n, int steps, float a, float b) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  float v[16], sum = 0.0f;
#pragma unroll
  for (int i = 0; i < 16; ++i) v[i] = i;
#pragma unroll 1
  for (int s = 0; s < steps; ++s) {
#pragma unroll
    for (int i = 0; i < 16; ++i) v[i] = v[i] * a + b;
    // yours: OTHERS integer instructions
  }
#pragma unroll
  for (int i = 0; i < 16; ++i) sum += v[i];
  if (t < n) out[t] = sum;
}
"""


# %% stub-2
def distances(turn):
    """For each LDS that sets a scoreboard, in order: the number of instructions
    issued until one waits for that board."""
    way = [i for i, times in turn for _ in range(times)]
    loads = [i for i in way if i.op == "LDS" and i.sets is not None]
    return [0 for load in loads]  # yours
