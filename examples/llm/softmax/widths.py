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
# launcher takes, PyTorch, and a copy. First fp32, then bf16.

# %% setup
import cudatut as ct
from cudatut.book.llm.kernels.row_softmax import softmax
from cudatut.book.llm.model.reference import softmax as softmax_numpy
from cudatut.book.measure.spread import medians
from cudatut.book.numbers.bf16 import to_bf16, to_float
from cudatut.book.rivals.torch_rival import rival

NUMBERS = 1 << 27  # bf16: 256 MiB, more than any L2 cache holds
# Powers of two, and widths between them; 781 is odd.
WIDTHS = (
    *(256, 384, 512, 781, 1024, 1536, 2048, 3000, 4096, 6144, 8192, 12288),
    *(16384, 24576, 32000, 49152, 65536, 98304, 128256, 262144),
)

# %% check
given = ct.rng(0).standard_normal(NUMBERS, dtype="float32")
# Room for the numbers of each type, and for their shares.
arrays = {
    name: (ct.to_device(x), ct.empty(NUMBERS, x.dtype))
    for name, x in (("fp32", given), ("bf16", to_bf16(given)))
}


def rows_of(name, width):
    """As many whole rows of this width as there are numbers for."""
    n = NUMBERS // width
    return (a[: n * width].reshape(n, width) for a in arrays[name])


for name in arrays:
    for width in WIDTHS:
        x, out = rows_of(name, width)
        ct.poison(arrays[name][1])
        softmax(x, out)
        few, found = x[-2:].get(), out[-2:].get()
        if name == "bf16":
            few, found = to_float(few), to_float(found)
        ct.check(
            found,
            softmax_numpy(few.astype("float64")),
            name=f"rows of {width}, {name}",
            # Half of the distance between neighbors in bf16.
            rtol=2e-5 if name == "fp32" else 2.0**-8,
        )


# %% widths
def rates_of(name):
    """GB/s of each contestant, by width; nothing under a tool."""
    rates = {}
    for width in WIDTHS:
        x, out = rows_of(name, width)
        runs = {
            "copy": ct.vendor.copy(out, x),
            "softmax": lambda x=x, out=out: softmax(x, out),
            "PyTorch": rival(lambda torch, t: lambda: torch.softmax(t, -1), x),
        }
        for one, us in medians(runs, rounds=15).items():
            rates.setdefault(one, []).append((width, 2 * x.nbytes / us / 1e3))
    return rates


def show(rates, title):
    if rates:
        ct.series(
            title, x=("numbers in a row", ""), y=("rate", "GB/s"), lines=rates
        )


of_fp32 = rates_of("fp32")
show(of_fp32, "softmax of rows of fp32")

# %% widths-bf16
of_bf16 = rates_of("bf16")
show(of_bf16, "softmax of rows of bf16")


# %% beside
def beside_copy(rates, title):
    if not rates:
        return
    ct.table(
        title,
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


beside_copy(of_fp32, "fp32: rate, in times of that of the copy")

# %% beside-bf16
beside_copy(of_bf16, "bf16: rate, in times of that of the copy")
