# ---
# jupyter:
#   cudatut:
#     title: {en: "A sum as a tree: claims", zh: "用一棵树求和：有关说法"}
#     requires: sm_75
#     timeout_s: 60
#     alone: false
# ---

# %% [markdown]
# What another source says of the tree, tried.

# %% rounds-claim
import cudatut as ct

count_rounds = ct.Kernel(
    """
__global__ void count_rounds(int* out) {
  int rounds = 0;
  for (int step = 1; step < blockDim.x; step *= 2) rounds += 1;
  if (threadIdx.x == 0) out[0] = rounds;
}
""",
    "count_rounds",
)


def rounds_of(threads):
    out = ct.empty(1, "int32")
    count_rounds(out, grid=1, block=threads)
    return int(out.get()[0])


ct.claim(
    id="reduction-rounds",
    source="CUDATutorial 08",
    place={
        "en": "section 2.3, below the kernel, and the comment above its loop",
        "zh": "2.3 节，kernel 之后的正文，以及循环上方的注释",
    },
    form="said",
    statement={
        "en": "The loop over a block takes log2(block) - 1 rounds, for "
        "example 2 for a block of 8. Rounds for blocks of 8 and of 256:",
        "zh": "线程块的循环要走 log2(block) - 1 轮，例如 8 个线程走 2 轮。"
        "8 个和 256 个线程的轮数：",
    },
    expected=(2, 7),
    measured=(rounds_of(8), rounds_of(256)),
    rule="equal",
    found="counted",
    control=(
        {
            "en": "blocks of 1 and of 2; by hand, 0 and 1 rounds",
            "zh": "1 个和 2 个线程；用手数，0 轮和 1 轮",
        },
        (rounds_of(1), rounds_of(2)),
        (0, 1),
    ),
)
