# ---
# jupyter:
#   cudatut:
#     title: {en: "Random numbers: speed", zh: "随机数：速度"}
#     requires: sm_75
#     timeout_s: 180
#     sizes:
#       n: [1_073_741_824, 1_048_576]
#       rounds: [15, 1]
# ---

# %% [markdown]
# 2^30 numbers: words, uniform and normal ones, ours and the library's.

# %% setup
import cudatut as ct
from cudatut.book.primitives.random import launch
from cudatut.book.rivals.absent import absent
from cudatut.book.rivals.torch_rival import rival

n = 1_073_741_824
rounds = 15
out, words = ct.empty(n, "float32"), ct.empty(n, "uint32")
ct.compile_ahead(launch.instances())


def by_curand(kind):
    """cuRAND's own Philox, as CuPy calls it; None under a tool."""
    if ct.tool.running():
        return None
    try:
        from cupy.cuda import curand
    except ImportError as error:
        return absent("CuPy is not installed", error)

    PHILOX4_32_10 = 161
    generator = curand.createGenerator(PHILOX4_32_10)
    to = int(out.gpudata)
    if kind == "uniform":
        return ct.vendor.Vendor(
            lambda: curand.generateUniform(generator, to, n)
        )
    return ct.vendor.Vendor(
        lambda: curand.generateNormal(generator, to, n, 0.0, 1.0)
    )


def memset():
    if ct.tool.running():
        return None
    import pycuda.driver as cuda

    return lambda: cuda.memset_d32_async(words.gpudata, 7, n)


# %% [markdown]
# Words: the arithmetic without stores, stores without arithmetic, and both.

# %% words
alone = ct.Kernel("primitives/random/alone.cu", "alone<256>")


def arithmetic():
    alone(words, 1, 0, grid=n // 4096, block=256)


by_words = ct.bench(
    {
        "memset": memset(),
        "arithmetic alone": arithmetic,
        **{
            f"words, {each} per thread": launch.fill(
                words, "words", 1, each=each // 4
            )
            for each in (4, 8, 16, 32)
        },
    },
    bytes=4 * n,
    name="words",
    rounds=rounds,
)

# %% uniform
by_uniform = ct.bench(
    {
        "uniform": launch.fill(out, "uniform", 1),
        "cuRAND": by_curand("uniform"),
        "PyTorch": rival(lambda torch, x: lambda: x.uniform_(), out),
        "memset": memset(),
    },
    bytes=4 * n,
    name="uniform",
    rounds=rounds,
)

# %% normal
by_normal = ct.bench(
    {
        "normal": launch.fill(out, "normal", 1),
        "normal, fast": launch.fill(out, "normal, fast", 1),
        "cuRAND": by_curand("normal"),
        "PyTorch": rival(lambda torch, x: lambda: x.normal_(), out),
        "memset": memset(),
    },
    bytes=4 * n,
    name="normal",
    rounds=rounds,
)

# %% goals
if "cuRAND" in [row.name for row in by_uniform.rows]:
    ct.goals(
        "rate beside cuRAND",
        {
            "uniform": by_uniform.goal("uniform", "cuRAND", 1.0),
            "normal": by_normal.goal("normal", "cuRAND", 1.0),
            "normal, fast": by_normal.goal("normal, fast", "cuRAND", 1.0),
        },
    )

# %% [markdown]
# The option's price from so many samples: nothing is stored, all is added up.

# %% price
option = launch.Option()


def by_torch(torch, out):
    spread = option.volatility * option.years**0.5
    drift = (option.rate - option.volatility**2 / 2) * option.years

    def run():
        out.normal_()
        end = option.price * torch.exp(drift + spread * out)
        return torch.clamp(end - option.strike, min=0).mean()

    return run


by_price = ct.bench(
    {
        "price": launch.price_launcher(option, n, 1),
        "price, fast": launch.price_launcher(option, n, 1, fast=True),
        "PyTorch": rival(by_torch, out),
    },
    name="price of an option",
    rounds=rounds,
)
