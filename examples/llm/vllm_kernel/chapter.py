# ---
# jupyter:
#   cudatut:
#     title: {en: "vLLM's paged attention kernel, beside ours", zh: "vLLM 的分页注意力 kernel，与本书的对照"}
#     requires: sm_75
#     sizes:
#       n: [16_777_216, 65_536]
# ---

# %% [markdown] about
# (to write: the idea of this chapter in a sentence or two)

# %% program
import numpy as np

import cudatut as ct

kernel = ct.Kernel("llm/vllm_kernel/vllm_kernel.cu", "copy_elements")

n = 16_777_216
block = 256
x_host = ct.rng(0).random(n, dtype="float32")
x, out = ct.to_device(x_host), ct.empty(n, "float32")
kernel(x, out, n, grid=ct.cdiv(n, block), block=block)
print("right:", np.array_equal(out.get(), x_host))

# %% [markdown] about-check
# (to write: what the check compares; every length, also those that fit no block)

# %% check
for m in ct.RAGGED:
    out = ct.empty(m, "float32")
    kernel(x, out, m, grid=ct.cdiv(m, block), block=block)
    ct.check(out, x_host[:m], name=f"n = {m}")

# %% bench
out = ct.empty(n, "float32")
ct.bench(
    {
        "kernel": lambda: kernel(x, out, n, grid=n // block, block=block),
        "copy": ct.vendor.copy(out, x),
    },
    bytes=2 * x.nbytes,
    name="time",
)
