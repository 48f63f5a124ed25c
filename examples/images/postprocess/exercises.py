# ---
# jupyter:
#   cudatut:
#     requires: sm_75
#     exercises:
#       1:
#         title: {en: "How much two boxes share", zh: "两个框重叠多少"}
#         level: easy
#         minutes: 10
#         task:
#           en: >-
#             Write `iou`. For each pair, store the area that boxes `a[i]` and
#             `b[i]` share, divided by the area that they cover together. Boxes
#             are x1, y1, x2, y2. Where they cover nothing, store 0. Blocks have
#             256 threads.
#           zh: >-
#             写 `iou`：对每一对框 `a[i]` 和 `b[i]`，存下交集面积除以并集面积的商。框用
#             x1、y1、x2、y2 表示；并集面积为 0 时存 0。每个线程块 256 个线程。
#         fails: "never written"
#       2:
#         title: {en: "A batch of images", zh: "一批图像"}
#         level: medium
#         minutes: 15
#         task:
#           en: >-
#             `boxes` of several images lie one after the other: those of image
#             m are from `begins[m]` up to, but not including, `begins[m + 1]`.
#             An image may have none. Write `label`, which stores in
#             `labels[i]` a number that only boxes of the same image and the
#             same class share. One launch of `nms` then does the whole batch.
#             Blocks have 256 threads.
#           zh: >-
#             多幅图像的框依次排列：第 m 幅图像的框从 `begins[m]` 到 `begins[m + 1]`
#             （不含后者），可以一个都没有。写 `label`，在 `labels[i]`
#             里存一个数，只有同一幅图像、同一类别的框才相同。这样调用一次 `nms`
#             就能处理整批图像。每个线程块 256 个线程。
#         fails: "never written"
#       3:
#         title: {en: "Thirty-two boxes by ballots", zh: "用投票判定 32 个框"}
#         level: medium
#         minutes: 20
#         task:
#           en: >-
#             A warp has 32 boxes, the best first. Bit j of `overlaps[i]` says
#             whether box i overlaps box j, in both directions. Write `decide`.
#             It stores in `stay[0]` a bit for each box that stays, and in
#             `turns[0]` how many turns it took. In each turn, all boxes that
#             can be decided are: those of which every overlapping box before
#             them is gone stay, and those that overlap a box before them that
#             stays are gone.
#           zh: >-
#             一个线程束负责 32 个框，得分最高的在前。`overlaps[i]` 的第 j 位表示第 i
#             个框与第 j 个框是否重叠，两个方向都有。写 `decide`：保留的框在 `stay[0]`
#             里各占一位，`turns[0]` 是用了几轮。每一轮判定所有能判定的框：排在前面、
#             与它重叠的框都已去掉的，保留；与排在前面、已保留的框重叠的，去掉。
#         fails: "never written"
# ---

# %% stub-1
iou = ct.Kernel(
    """
__global__ void iou(const float4* a, const float4* b, float* out, int n) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  // yours: a float4 has x, y, z, w; here x1, y1, x2, y2
}
""",
    "iou",
)

# %% stub-2
label = ct.Kernel(
    """
__global__ void label(const int* begins, int images, const int* classes,
                      int how_many_classes, int* labels, int n) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  // yours: which image has box i?
}
""",
    "label",
)

# %% stub-3
decide = ct.Kernel(
    """
__global__ void decide(const unsigned* overlaps, unsigned* stay, int* turns) {
  const int lane = threadIdx.x;
  // yours: two ballots in each turn
}
""",
    "decide",
)
