# ---
# jupyter:
#   cudatut:
#     title: {en: "Direct convolution: claims", zh: "直接卷积：说法的检验"}
#     requires: sm_75
#     timeout_s: 60
#     sizes:
#       blocks: [[416, 1, 32], [2, 1, 2]]
# ---

# %% [markdown]
# The notes on Learn CUDA Programming copy weights into shared memory in two
# ways: each thread all weights of its filter, or all threads of a block
# together. Their loops in our words, in blocks of 8 x 8 places and 4 filters of
# 128 channels and 3 x 3.

# %% weights

import cudatut as ct

FILE = "images/direct/claims.cu"
blocks = (416, 1, 32)
each, block = 128 * 9, (8, 8, 4)
filters = blocks[2] * block[2]
host = ct.rng(0).integers(-4, 5, (filters, each)).astype("float32")
weights = ct.to_device(host)
sums = ct.empty((blocks[0], filters, 64), "float32")


def way(together):
    kernel = ct.Kernel(FILE, f"notes_weights<{str(together).lower()}>")

    def run():
        kernel(
            weights,
            sums,
            each,
            grid=blocks,
            block=block,
            shared=4 * each * block[2],
        )

    return run


ways = {"each for itself": way(False), "together": way(True)}
expected = host.reshape(filters, each // 64, 64).sum(axis=1)
for name, run in ways.items():
    ct.poison(sums)
    run()
    ct.check(sums[0], expected, name=name, rtol=0)
SECTORS = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"
REQUESTS = "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"
counted = ct.profile_launches(
    "images/direct_claims",
    "regex:^notes_weights",
    [SECTORS, REQUESTS],
    launches=2,
)
times = ct.bench(
    ways | {"each, again": ways["each for itself"]},
    name="weights into shared memory",
)

# %% claims-weights
NOTES = "Learn CUDA Programming, notes"
WHERE = {
    "en": "the section on shared memory, the 2D convolution layer",
    "zh": "共享内存一节，二维卷积层",
}
if counted:
    each_way, together = (one[SECTORS] / one[REQUESTS] for one in counted)
    ct.claim(
        id="conv-weights-uncoalesced",
        source=NOTES,
        place=WHERE,
        form="said",
        statement={
            "en": "Where each thread copies all weights of its filter, the loads "
            "are uncoalesced. (Sectors of a load of a warp, in blocks of 8 × 8 × "
            "4; neighboring words for neighboring lanes would need 4, so "
            "uncoalesced is above 4.)",
            "zh": "每个线程各自复制所属滤波器的全部权重时，读取未合并。（线程块为 8 × 8 × 4 时，线程束一次读取的扇区数；"
            "相邻 lane 读相邻的字需要 4 个，未合并则高于 4。）",
        },
        expected=4.0,
        measured=each_way,
        rule="above",
        control=(
            {
                "en": "where all threads copy together",
                "zh": "所有线程一起复制时",
            },
            together,
            4.0,
        ),
    )
ct.claim(
    id="conv-weights-together",
    source=NOTES,
    place=WHERE,
    form="said",
    statement={
        "en": "All threads of a block should copy the weights together. (Time of "
        "each for itself / of together.)",
        "zh": "权重应由线程块的所有线程一起复制。（各自复制的用时 / 一起复制的用时。）",
    },
    expected=1.0,
    measured=times["each for itself"].median_us / times["together"].median_us,
    rule="above",
    unit="×",
    control=(
        {"en": "each for itself beside itself", "zh": "各自复制与自己相比"},
        times["each for itself"].median_us / times["each, again"].median_us,
        (0.97, 1.03),
    ),
)

# %% [markdown]
# CUDATutorial's first kernel has a thread for each result, in blocks of 16
# places x 16 filters. Its text says what a block computes. A kernel with its
# grid writes down which block each result is from.

# %% blocks
who = ct.Kernel(
    """
__global__ void who(int* block_of, int places, int filters, int images) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x;
  const int y = blockIdx.y * blockDim.y + threadIdx.y, z = blockIdx.z;
  if (x < places && y < filters && z < images)
    block_of[(z * filters + y) * places + x] =
        (z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
}
""",
    "who",
)
images, planes, places = 2, 5, 8 * 8  # as in its main()


def of_first_block(block):
    """Channels of results, and places of a channel, that block 0 writes."""
    out = ct.empty((images, planes, places), "int32")
    grid = ct.cdiv(places, block[0]), ct.cdiv(planes, block[1]), images
    who(out, places, planes, images, grid=grid, block=block)
    mine = out.get() == 0
    return [int(mine.any(axis=(0, 2)).sum()), int(mine.sum(axis=2).max())]


# %% claims-blocks
ct.claim(
    id="convolution-block-is-a-channel",
    source="CUDATutorial 12/01",
    place={
        "en": "section 2, first paragraph, and the summary",
        "zh": "第 2 节第一段，以及总结",
    },
    form="said",
    statement={
        "en": "With one thread for each result, a block computes all results of "
        "one output channel. (Channels that block 0 writes, and places of a "
        "channel; blocks of 16 × 16, the sizes of its program.)",
        "zh": "一个线程算一个输出元素，一个线程块就算出一个输出通道的所有输出元素。（0 号线程块"
        "写的通道数，以及每个通道的位置数；线程块 16 × 16，尺寸取自其程序。）",
    },
    expected=[1, places],
    measured=of_first_block((16, 16, 1)),
    rule="equal",
    found="counted",
    control=(
        {"en": "with blocks of 64 × 1", "zh": "线程块为 64 × 1 时"},
        of_first_block((64, 1, 1)),
        (1, 64),
    ),
)

# %% [markdown]
# It defines convolution with f(t) g(t - tau) turned round, and then adds up
# products of what lies one on the other.

# %% claims-turned
from cudatut.book.images.direct import launch
from cudatut.book.images.shapes import Shape, reference

shape = Shape(images, 2, 10, 10, planes, (3, 3))
rng = ct.rng(1)
x = rng.integers(-4, 5, (2, 2, 10, 10)).astype("float32")
w = rng.integers(-4, 5, (planes, 2, 3, 3)).astype("float32")
y = ct.empty((images, planes, 8, 8), "float32")
launch.naive(shape, ct.to_device(x), ct.to_device(w), y)()
found = y.get()
turned = reference(shape, x, w[..., ::-1, ::-1])
ct.check(y, reference(shape, x, w), name="cross-correlation", rtol=0)
ct.claim(
    id="convolution-as-defined",
    source="CUDATutorial 12/01",
    place={
        "en": "section 1, the discrete definition, and the code of section 2",
        "zh": "第 1 节的离散定义，以及第 2 节的代码",
    },
    form="code",
    statement={
        "en": "The kernel computes the convolution that is defined, the sum of "
        "f(τ) g(t − τ), in which one of the two runs backwards. (Results of "
        "its sizes that are so, with whole numbers.)",
        "zh": "kernel 算的就是所定义的卷积，即 f(τ) g(t − τ) 之和，其中一个反向取值。（按其"
        "尺寸，用整数时符合的结果个数。）",
    },
    expected=y.size,
    measured=int((found == turned).sum()),
    rule="equal",
    found="counted",
    control=(
        {
            "en": "the sum of f(t + τ) g(τ), a cross-correlation",
            "zh": "f(t + τ) g(τ) 之和，即互相关",
        },
        int((found == reference(shape, x, w)).sum()),
        640,
    ),
)

# %% [markdown]
# It says that an image of three channels has three kernels, each for itself. That
# is true of the three slices of a filter, before they are added up.

# %% claims-channels
three = Shape(1, 3, 8, 8, 1, (3, 3))
apart = three._replace(filters=3, groups=3)


def planes_of(shape):
    """Planes of results, after a launch that was right."""
    each = shape.channels // shape.groups
    a = rng.integers(-4, 5, (1, 3, 8, 8)).astype("float32")
    b = rng.integers(-4, 5, (shape.filters, each, 3, 3)).astype("float32")
    out = ct.empty((1, shape.filters, *shape.out), "float32")
    launch.naive(shape, ct.to_device(a), ct.to_device(b), out)()
    name = f"{shape.groups} groups"
    ct.check(out, reference(shape, a, b), name=name, rtol=0)
    return out.shape[1]


ct.facts(
    "planes of results of an image of three channels",
    {
        "one filter for all channels": planes_of(three),
        "depthwise, three groups": planes_of(apart),
    },
)
