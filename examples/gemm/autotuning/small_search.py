# ---
# jupyter:
#   cudatut:
#     title: {en: "Tuning the final kernel: a small search", zh: "为最终的 kernel 自动调优：一次小的搜索"}
#     requires: sm_80
#     timeout_s: 60
#     sizes:
#       n: [2048, 128]
#       rounds: [[3, 20], [1, 1]]
# ---

# %% [markdown]
# A complete search of a small space: three instances of one template, launched
# by hand, checked, and raced in two heats.

# %% program
import cudatut as ct

# Few rounds for all, more for the best.
from cudatut.book.gemm.tuner import race

n = 2048
a = ct.to_device(ct.rng(0).random((n, n), dtype="float32"))
b = ct.to_device(ct.rng(1).random((n, n), dtype="float32"))
c = ct.empty((n, n), "float32")
expected = a.get().astype("float64") @ b.get()


def instance(tm, tn):
    """A launch of the kernel with tm x tn results per thread, checked."""
    name = f"sgemm_block_tile<128,128,8,{tm},{tn}>"
    kernel = ct.Kernel("gemm/ladder/block_tile_2d.cu", name)
    grid, block = (n // 128, n // 128), 128 * 128 // (tm * tn)

    def run():
        kernel(a, b, c, n, n, n, 1.0, 0.0, grid=grid, block=block)

    ct.poison(c)
    run()
    ct.check(c, expected, name=f"{tm} x {tn}", atol=0.1)
    return run


candidates = {
    f"{tm} x {tn}": instance(tm, tn) for tm, tn in ((4, 4), (8, 4), (8, 8))
}
rounds = (3, 20)  # of the two heats
heats = race(candidates, rounds, at_least=2)
winner = heats[-1].kept[0]
print("fastest:", winner)
ct.bench({"winner": candidates[winner]}, flops=2 * n**3)
