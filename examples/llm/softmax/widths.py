# ---
# jupyter:
#   cudatut:
#     title: {en: "Softmax: rows of all lengths", zh: "Softmax：行的各种长度"}
#     requires: sm_80
#     extra: llm
#     timeout_s: 180
#     sizes:
#       NUMBERS: [134217728, 1048576, 1048576]
# ---

# %% [markdown]
# As many numbers each time, in rows of another length: the kernel that the
# launcher takes, PyTorch, and a copy.

# %% setup
import cudatut as ct
from cudatut.book.llm.kernels.row_softmax import softmax
from cudatut.book.llm.model.reference import softmax as softmax_numpy
from cudatut.book.measure.spread import medians
from cudatut.book.rivals.torch_rival import rival

NUMBERS = 1 << 27  # fp32: 512 MiB, more than any L2 cache holds
# Powers of two, and widths between them; some have no common factor with a warp.
WIDTHS = (
    *(256, 384, 512, 781, 1024, 1536, 2048, 3000, 4096, 6144, 8192, 12288),
    *(16384, 24576, 32000, 49152, 65536, 98304, 128256, 262144),
)

# %% check
x_all, out_all = (ct.empty(NUMBERS, "float32") for _ in range(2))
x_all.set(ct.rng(0).standard_normal(NUMBERS, dtype="float32"))


def rows_of(width):
    """As many whole rows of this width as there are numbers for."""
    n = NUMBERS // width
    return (a[: n * width].reshape(n, width) for a in (x_all, out_all))


for width in WIDTHS:
    x, out = rows_of(width)
    ct.poison(out_all)
    softmax(x, out)
    want = softmax_numpy(x[-2:].get().astype("float64"))
    ct.check(out[-2:], want, name=f"rows of {width}", rtol=2e-5)

# %% widths
rates = {}
for width in WIDTHS:
    x, out = rows_of(width)
    runs = {
        "copy": ct.vendor.copy(out, x),
        "softmax": lambda x=x, out=out: softmax(x, out),
        "PyTorch": rival(lambda torch, t: lambda: torch.softmax(t, -1), x),
    }
    for name, us in medians(runs, rounds=15).items():
        rates.setdefault(name, []).append((width, 2 * x.nbytes / us / 1e3))
if rates:  # not under a tool
    ct.series(
        "softmax of rows of fp32",
        x=("numbers in a row", ""),
        y=("rate", "GB/s"),
        lines=rates,
    )

# %% beside
if rates:
    ct.table(
        "rate, in times of that of the copy",
        {
            f"rows of {width}": {
                name: dict(line)[width] / copied
                for name, line in rates.items()
                if name != "copy"
            }
            for width, copied in rates["copy"]
        },
        corner="rows",
    )
