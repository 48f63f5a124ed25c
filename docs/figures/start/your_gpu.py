"""Figures of the chapter on knowing your GPU."""

import math

from cudatut.site import references
from cudatut.site.svg import Svg, figure, tr


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
    column = (700 - left) / len(capabilities)
    s = Svg(720, top + row * len(codes) + 12)
    s.text(
        left + column * len(capabilities) / 2,
        20,
        tr("GPU of compute capability", "GPU 的计算能力"),
        "bold",
    )
    s.text(12, 50, tr("compiled for", "编译目标"), "bold", "start")
    for j, (major, minor) in enumerate(capabilities):
        s.text(left + column * (j + 0.5), 50, f"{major}.{minor}")
    for i, code in enumerate(codes):
        y = top + row * i
        machine = code.startswith("sm_")
        s.text(12, y + 22, code, "mono", "start")
        s.text(left - 12, y + 22, "cubin" if machine else "PTX", "muted", "end")
        for j, capability in enumerate(capabilities):
            runs = runs_on(code, capability)
            cls = ("c1" if machine else "c3") if runs else "c0"
            s.rect(
                left + column * j + 2,
                y + 2,
                column - 4,
                row - 4,
                cls=cls,
                text="✓" if runs else "–",
            )
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
    bottom = top + rows * cell
    right = left + per_row * cell
    s = Svg(720, bottom + 176)
    s.text(
        left,
        24,
        tr(f"{sm_count} multiprocessors (SM)", f"{sm_count} 个多处理器（SM）"),
        "bold",
        "start",
    )
    for i in range(sm_count):
        x, y = left + i % per_row * cell, top + i // per_row * cell
        s.rect(x + 1, y + 1, cell - 2, cell - 2, cls="c1", rx=2)
    s.rect(
        left,
        bottom + 26,
        right - left,
        44,
        cls="c3",
        text=tr(f"L2 cache, {l2_mib:.0f} MiB", f"L2 缓存，{l2_mib:.0f} MiB"),
    )
    s.arrow((left + right) / 2, bottom + 24, (left + right) / 2, bottom + 4, "muted")
    s.rect(
        left,
        bottom + 118,
        right - left,
        44,
        cls="c4",
        text=tr(f"memory (DRAM), {memory_gib:.0f} GiB", f"显存（DRAM），{memory_gib:.0f} GiB"),
    )
    s.arrow((left + right) / 2, bottom + 114, (left + right) / 2, bottom + 74, "accent")
    s.text(
        (left + right) / 2 + 14,
        bottom + 99,
        tr(f"at most {theory_gb_s:.0f} GB/s", f"最多 {theory_gb_s:.0f} GB/s"),
        "",
        "start",
    )
    s.rect(
        right + 90,
        bottom + 26,
        690 - right - 90,
        136,
        cls="c0",
        text=tr("memory of\nthe host", "主机\n内存"),
    )
    s.arrow(right + 88, bottom + 140, right + 4, bottom + 140, "accent")
    s.text(right + 46, bottom + 108, f"{pinned_gb_s:.0f} GB/s")
    s.text(right + 46, bottom + 126, "PCIe")
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
            "录制所用的 GPU，按它自己的属性画出。PCIe 上标的是从锁页内存实测的速率。",
        ),
    )


def recorded() -> str:
    """The diagram of the GPU in the recording."""

    def value(cell: str, row: str):
        return references.value(f'start/your_gpu#{cell}["{row}"].value')

    return diagram(
        sm_count=value("query", "sm_count"),
        l2_mib=value("query", "l2"),
        memory_gib=value("query", "memory"),
        bus_bits=value("query", "bus"),
        theory_gb_s=value("theory", "bandwidth"),
        pinned_gb_s=value("host", "HtoD, pinned"),
    )
