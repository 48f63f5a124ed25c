"""Figures of the chapter on knowing your GPU."""

import math

from cudatut.site import references
from cudatut.site.drawing import Grid, Svg, figure, tr


def runs_on(code: str, capability: tuple[int, int]) -> bool:
    """Does code that nvcc built for `code` ('sm_80', 'sm_90a', 'compute_80') run on this compute capability?"""
    kind, _, digits = code.partition("_")
    exact, digits = digits.endswith("a"), digits.rstrip("a")
    built = int(digits[:-1]), int(digits[-1])
    if exact:
        return built == capability
    return (
        built[0] == capability[0] and built <= capability if kind == "sm" else built <= capability
    )


def matrix(
    codes=("sm_80", "sm_86", "sm_90", "sm_90a", "compute_80", "compute_90", "compute_90a"),
    capabilities=((7, 5), (8, 0), (8, 6), (8, 9), (9, 0), (10, 0), (12, 0)),
) -> str:
    """Which compiled code (rows) runs on which GPU (columns), by the rule of `runs_on`."""
    left, top, row = 170, 62, 34
    s = Svg(720, top + row * len(codes) + 12)
    cells = Grid(s, left + 2, top + 2, (700 - left) / len(capabilities), row, gap=4, rx=4)
    s.text((left + 700) / 2, 20, tr("GPU of compute capability", "GPU 的计算能力"), "bold")
    s.text_from(12, 50, tr("compiled for", "编译目标"), "bold")
    cells.heads((f"{major}.{minor}" for major, minor in capabilities), "", up=14)
    for i, code in enumerate(codes):
        machine = code.startswith("sm_")
        cells.named(i, 12, code, "mono").name(i, "cubin" if machine else "PTX", away=14)
        runs, not_ = ("c1" if machine else "c3", "✓"), ("c0", "–")
        cells.row(i, [runs if runs_on(code, one) else not_ for one in capabilities])
    lines = [
        f"{code}: {', '.join(f'{a}.{b}' for a, b in capabilities if runs_on(code, (a, b))) or '-'}"
        for code in codes
    ]
    return figure(
        s,
        alt=tr(
            "Which code runs on which compute capability. ", "各编译目标能在哪些计算能力上运行。"
        )
        + "; ".join(lines),
        caption=tr(
            "Machine code (cubin) runs within its major version, on the same or a later minor; PTX is translated by "
            "the driver for every later GPU; the suffix `a` ends both promises.",
            "机器码（cubin）只能在同一主版本、次版本相同或更高的 GPU 上运行；PTX 由驱动翻译，能用于之后的任何 GPU；"
            "带后缀 `a` 的两样都不保证。",
        ),
    )


def diagram(
    sm_count=132, l2_mib=50, memory_gib=80, bus_bits=5120, theory_gb_s=3352, pinned_gb_s=55
) -> str:
    """The GPU seen from a launch: SMs over L2 over memory, and the bus to the host; one square per SM."""
    per_row = 22
    rows = math.ceil(sm_count / per_row)
    cell, left, top = 22, 20, 40
    bottom, right = top + rows * cell, left + per_row * cell
    middle, wide = (left + right) / 2, right - left
    s = Svg(720, bottom + 176)
    title = tr(f"{sm_count} multiprocessors (SM)", f"{sm_count} 个多处理器（SM）")
    s.text_from(left, 24, title, "bold")
    sms = Grid(s, left + 1, top + 1, cell, gap=2)
    for i in range(sm_count):
        sms.box(i // per_row, i % per_row)
    l2 = tr(f"L2 cache, {l2_mib:.0f} MiB", f"L2 缓存，{l2_mib:.0f} MiB")
    dram = tr(f"memory (DRAM), {memory_gib:.0f} GiB", f"显存（DRAM），{memory_gib:.0f} GiB")
    rate = tr(f"at most {theory_gb_s:.0f} GB/s", f"最多 {theory_gb_s:.0f} GB/s")
    host = tr("memory of\nthe host", "主机\n内存")
    s.rect(left, bottom + 26, wide, 44, "c3", l2).rect(left, bottom + 118, wide, 44, "c4", dram)
    s.arrow(middle, bottom + 24, middle, bottom + 4, "muted")
    s.arrow(middle, bottom + 114, middle, bottom + 74, "accent")
    s.text_from(middle + 14, bottom + 99, rate)
    s.rect(right + 90, bottom + 26, 690 - right - 90, 136, "c0", host)
    s.arrow(right + 88, bottom + 140, right + 4, bottom + 140, "accent")
    s.text(right + 46, bottom + 108, f"{pinned_gb_s:.0f} GB/s\nPCIe")
    return figure(
        s,
        alt=tr(
            f"{sm_count} SMs above an L2 cache of {l2_mib:.0f} MiB above {memory_gib:.0f} GiB of memory on a bus of "
            f"{bus_bits} bits, {theory_gb_s:.0f} GB/s; the host's memory behind PCIe, {pinned_gb_s:.0f} GB/s.",
            f"{sm_count} 个 SM，其下是 {l2_mib:.0f} MiB 的 L2 缓存，再下是 {memory_gib:.0f} GiB 设备内存，总线 {bus_bits} 位、"
            f"{theory_gb_s:.0f} GB/s；主机内存隔着 PCIe，{pinned_gb_s:.0f} GB/s。",
        ),
        caption=tr(
            "The recorded GPU, drawn from its own attributes. The rate on PCIe is the measured one, from pinned memory.",
            "测量所用的 GPU，按从驱动读到的属性画出。PCIe 上标的是从锁页内存实测的速率。",
        ),
    )


def recorded() -> str:
    """The diagram of the GPU in the recording."""

    def value(cell: str, row: str):
        return references.value(f'start/your_gpu#{cell}["{row}"].value')

    return diagram(
        value("query", "sm_count"),
        l2_mib=value("query", "l2"),
        memory_gib=value("query", "memory"),
        bus_bits=value("query", "bus"),
        theory_gb_s=value("theory", "bandwidth"),
        pinned_gb_s=value("host", "HtoD, pinned"),
    )
