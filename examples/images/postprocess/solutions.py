# ---
# jupyter:
#   cudatut:
#     title: {en: "Boxes and NMS: solutions", zh: "检测框与 NMS：参考答案"}
#     requires: sm_75
#     timeout_s: 60
# ---

# %% [markdown]
# How much two boxes share; labels, by which one NMS does a batch of images; and
# 32 boxes that a warp decides by ballots.

# %% given-1
import numpy as np
import cudatut as ct

# %% solution-1
iou = ct.Kernel(
    """
__global__ void iou(const float4* a, const float4* b, float* out, int n) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  if (i >= n) return;
  const float4 p = a[i], q = b[i];
  const float w = fmaxf(fminf(p.z, q.z) - fmaxf(p.x, q.x), 0.0f);
  const float h = fmaxf(fminf(p.w, q.w) - fmaxf(p.y, q.y), 0.0f);
  const float both = w * h;
  const float of_p = (p.z - p.x) * (p.w - p.y);
  const float of_q = (q.z - q.x) * (q.w - q.y);
  const float all = of_p + of_q - both;
  out[i] = all > 0 ? both / all : 0.0f;
}
""",
    "iou",
)

# %% check-1
import cudatut as ct

for n in ct.RAGGED:
    chance = ct.rng(n)
    a, b = (chance.random((n, 4), dtype="float32") * 10 for _ in range(2))
    a[:, 2:] += a[:, :2]
    b[:, 2:] += b[:, :2]
    b[n // 2] = a[n // 2]  # the same box
    a[n // 3, 2:] = a[n // 3, :2]  # without an area
    b[n // 3] = a[n // 3]
    out = ct.empty(n, "float32")
    ct.poison(out)
    iou(
        ct.to_device(a),
        ct.to_device(b),
        out,
        n,
        grid=ct.cdiv(n, 256),
        block=256,
    )
    p, q = a.astype("float64"), b.astype("float64")
    sides = np.minimum(p[:, 2:], q[:, 2:]) - np.maximum(p[:, :2], q[:, :2])
    both = np.maximum(sides, 0).prod(axis=1)
    area = [(x[:, 2:] - x[:, :2]).prod(axis=1) for x in (p, q)]
    total = area[0] + area[1] - both
    expected = np.divide(both, total, out=np.zeros(n), where=total > 0)
    ct.check(out, expected, name=f"n={n}", atol=1e-5)

# %% given-2
import numpy as np
import cudatut as ct
from cudatut.book.images.postprocess.postprocess import nms
from cudatut.book.images.postprocess.reference import nms as by_numpy
from cudatut.book.images.postprocess.reference import some_boxes

# %% solution-2
label = ct.Kernel(
    """
__global__ void label(const int* begins, int images, const int* classes,
                      int how_many_classes, int* labels, int n) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  if (i >= n) return;
  int low = 0, high = images;  // it is one of low ... high - 1
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    if (begins[middle] <= i) low = middle;
    else high = middle;
  }
  labels[i] = low * how_many_classes + classes[i];
}
""",
    "label",
)

# %% check-2
import cudatut as ct

for counts in ([1], [5, 0, 3], [200, 0, 0, 131, 64, 0]):
    begins = np.concatenate([[0], np.cumsum(counts)]).astype("int32")
    n, images = int(begins[-1]), len(counts)
    boxes, scores = some_boxes(n, side=300.0, seed=n)
    classes = ct.rng(n).integers(0, 3, n).astype("int32")
    labels, kept = ct.empty(n, "int32"), ct.empty(n, "int32")
    number = ct.empty(1, "int32")
    ct.poison(labels)
    label(
        ct.to_device(begins), images, ct.to_device(classes), 3, labels, n,
        grid=ct.cdiv(n, 256), block=256,
    )  # fmt: skip
    found = labels.get()
    pairs = list(
        zip(np.repeat(np.arange(images), counts).tolist(), classes.tolist())
    )
    apart = {one: k for k, one in enumerate(dict.fromkeys(pairs))}
    same = {one: k for k, one in enumerate(dict.fromkeys(found.tolist()))}
    ct.check(labels, found, name=f"{images} images: labels", rtol=0)
    ct.check(
        np.array([same[one] for one in found.tolist()]),
        np.array([apart[one] for one in pairs]),
        name=f"{images} images: the same labels",
        rtol=0,
    )
    nms(
        ct.to_device(boxes), ct.to_device(scores), kept, number, classes=labels
    )()
    expected = []
    for m in range(images):
        own = slice(begins[m], begins[m + 1])
        stay = by_numpy(boxes[own], scores[own], classes=classes[own])
        expected += (stay + begins[m]).tolist()
    ct.check(number, [len(expected)], name=f"{images} images: how many", rtol=0)
    ct.check(
        np.sort(kept[: len(expected)].get()),
        np.sort(np.array(expected)),
        name=f"{images} images: those that stay",
        rtol=0,
    )

# %% given-3
import numpy as np
import cudatut as ct

# %% solution-3
decide = ct.Kernel(
    """
__global__ void decide(const unsigned* overlaps, unsigned* stay, int* turns) {
  const int lane = threadIdx.x;
  const unsigned before = overlaps[lane] & ((1u << lane) - 1);
  unsigned stays = 0, gone = 0;
  int count = 0;
  while (~(stays | gone)) {
    stays |= __ballot_sync(0xffffffffu, !(before & ~gone)) & ~gone;
    gone |= __ballot_sync(0xffffffffu, before & stays);
    ++count;
  }
  if (lane == 0) {
    stay[0] = stays;
    turns[0] = count;
  }
}
""",
    "decide",
)

# %% check-3
import cudatut as ct

for density in (0.0, 0.02, 0.1, 0.5, 1.0, -1.0):
    pairs = ct.rng(round(100 * density) + 200).random((32, 32)) < density
    if density < 0:  # each overlaps the next one
        pairs = np.eye(32, k=1, dtype=bool)
    pairs = np.triu(pairs, 1) | np.triu(pairs, 1).T
    words = (pairs @ (1 << np.arange(32, dtype="uint64"))).astype("uint32")
    stay, turns = ct.empty(1, "uint32"), ct.empty(1, "int32")
    ct.poison(stay, 0x5A)  # where none overlap, all bits are set
    ct.poison(turns)
    decide(ct.to_device(words), stay, turns, grid=1, block=32)
    expected, gone, count = np.zeros(32, bool), np.zeros(32, bool), 0
    before = np.tril(pairs, -1)
    while not (expected | gone).all():
        expected |= ~(before & ~gone[None]).any(axis=1) & ~gone
        gone |= (before & expected[None]).any(axis=1)
        count += 1
    bits = int(expected @ (1 << np.arange(32, dtype="uint64")))
    name = f"density {density}"
    ct.check(stay, np.array([bits], "uint32"), name=f"{name}: stay", rtol=0)
    ct.check(turns, [count], name=f"{name}: turns", rtol=0)
