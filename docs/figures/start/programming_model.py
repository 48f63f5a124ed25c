"""Drawings of the programming model: blocks on SMs, divergence, memories, issue slots, the roofline."""

from cudatut.site import references
from cudatut.site.drawing import Grid, Roofline, Svg, figure, hue, text_width, tr

EXAMPLE = "start/programming_model"


def _fact(cell: str, row: str, field: str = "value") -> float:
    return float(references.value(f'{EXAMPLE}#{cell}["{row}"].{field}'))


def warps(threads: int = 128, lanes: int = 32, schedulers: int = 4) -> str:
    """A block of `threads` threads cut into warps, and an SM whose schedulers take them."""
    left, cell, row, top = 150, 9, 40, 40
    count = -(-threads // lanes)
    right = left + lanes * cell + 60
    s = Svg(720, top + row * max(count, schedulers) + 12)
    s.text_from(
        left, 22, tr(f"a block of {threads} threads", f"一个 {threads} 线程的线程块"), "bold"
    )
    s.text_from(right + 8, 22, tr("a multiprocessor (SM)", "一个多处理器（SM）"), "bold")
    boxes = Grid(s, left, top, cell, row, gap=(1, 12), rx=1)
    for warp in range(count):
        first, last = warp * lanes, min(threads, (warp + 1) * lanes) - 1
        boxes.name(warp, tr(f"threads {first} to {last}", f"线程 {first} 到 {last}"), size=14)
        boxes.row(warp, [hue(warp)] * (last - first + 1))
        y, to = (boxes.center(line, 0)[1] for line in (warp, warp % schedulers))
        s.arrow(left + lanes * cell + 6, y, right - 4, to, "muted")
    for scheduler in range(schedulers):
        name = tr(f"warp scheduler {scheduler}", f"线程束调度器 {scheduler}")
        s.rect(right, top + row * scheduler, 720 - right - 6, 28, "c0", name)
    alt = tr(
        f"A block of {threads} threads is cut into {count} warps of {lanes} threads in the order of threadIdx.x. Each warp goes "
        f"to one of the {schedulers} warp schedulers of a multiprocessor.",
        f"{threads} 个线程的线程块按 threadIdx.x 的顺序切成 {count} 个线程束，每个 {lanes} 个线程。每个线程束交给多处理器的 {schedulers} 个线程束调度器之一。",
    )
    caption = tr(
        f"You write a block; the hardware cuts it into warps of {lanes} threads. Each small box is one thread.",
        f"你写的是线程块；硬件把线程块切成线程束，每个线程束 {lanes} 个线程。每个小格是一个线程。",
    )
    return figure(s, alt=alt, caption=caption)


def blocks_on_sms(blocks: int = 8, sms: tuple[int, ...] = (2, 4)) -> str:
    """The same blocks on GPUs with different numbers of SMs, one block per SM at a time."""
    box, left, row = 66, 66, 40
    turns = [-(-blocks // count) for count in sms]
    height = sum(46 + row * count for count in sms) + 10
    s = Svg(left + box * max(turns) + 20, height)
    y = 24
    for count, taken in zip(sms, turns):
        s.text_from(4, y, tr(f"{count} SMs: {taken} turns", f"{count} 个 SM：{taken} 轮"), "bold")
        lanes = Grid(s, left, y + 12, box, row, gap=(4, 8), rx=4)
        for sm in range(count):
            lanes.named(sm, 4, f"SM {sm}")
            taken_here = range(sm, blocks, count)
            lanes.row(sm, [(hue(b), tr(f"block {b}", f"块 {b}")) for b in taken_here])
        y += 46 + row * count
    s.arrow(left, height - 10, left + box * max(turns), height - 10, "muted")
    alt = tr(
        f"{blocks} blocks on GPUs with {' and '.join(map(str, sms))} SMs take {' and '.join(map(str, turns))} turns.",
        f"{blocks} 个线程块在 {'、'.join(map(str, sms))} 个 SM 的 GPU 上，分别要 {'、'.join(map(str, turns))} 轮。",
    )
    caption = tr(
        "One grid, two GPUs, time runs to the right. The drawing gives each SM one block at a time and equal times; "
        "a real SM holds several, and takes the next one whenever one ends.",
        "同一个网格在两种 GPU 上运行，时间从左到右。图中假设每个 SM 一次只放一个线程块，各个线程块用时相同；实际的 SM 可以同时放好几块，哪块先结束，就补上下一块。",
    )
    return figure(s, alt=alt, caption=caption)


def divergence(lanes: int = 8, warps: int = 2) -> str:
    """Both branches with `lanes` lanes per warp: sides by lane parity, and sides by warp."""
    cell, left, gap, row = 30, 88, 34, 32
    width = left + warps * lanes * cell + (warps - 1) * gap + 10
    s = Svg(width, 18 + (74 + 2 * row) + 30 + row + 6)
    spent = []
    for panel, by_lane in enumerate((True, False)):
        y = 18 + panel * (74 + 2 * row)
        title = tr(
            "neighbors disagree: lane % 2" if by_lane else "a warp agrees: warp % 2",
            "相邻线程不一致：lane % 2" if by_lane else "整个线程束一致：warp % 2",
        )
        s.text_from(4, y, title, "bold")
        slots = 0
        for warp in range(warps):
            cells = Grid(s, left + warp * (lanes * cell + gap), y + 30, cell, row, gap=(3, 4), rx=3)
            s.text(
                cells.x + lanes * cell / 2, y + 22, tr(f"warp {warp}", f"线程束 {warp}"), "muted"
            )
            sides = [lane % 2 if by_lane else warp % 2 for lane in range(lanes)]
            passes = sorted(set(sides))
            slots += len(passes)
            for turn, side in enumerate(passes):
                on, off = (f"c{1 + side}", "AB"[side]), "hollow dash muted"
                cells.row(turn, [on if own == side else off for own in sides])
        for turn in range(2 if by_lane else 1):
            s.text_from(4, y + 50 + turn * row, tr(f"time {turn}", f"时刻 {turn}"), "muted")
        spent.append(slots)
    alt = tr(
        f"{warps} warps of {lanes} lanes; half of the lanes go to side A, half to side B. Where neighbors disagree each "
        f"warp runs A and then B with half its lanes off, {spent[0]} passes in all; where warps agree each runs one side, {spent[1]} passes.",
        f"{warps} 个线程束，各 {lanes} 个 lane；一半线程走 A，一半走 B。相邻线程不一致时，每个线程束先跑 A 再跑 B，每趟有一半 lane 空闲，共 {spent[0]} 趟；"
        f"整个线程束一致时，各跑一边，共 {spent[1]} 趟。",
    )
    caption = tr(
        f"The same number of A and B in both drawings (warps drawn with {lanes} lanes). Dashed: a lane that is switched off. "
        f"{spent[0]} passes above, {spent[1]} below.",
        f"两图里 A 与 B 的数目相同（每个线程束只画 {lanes} 个 lane）。虚线表示停着的 lane。上图 {spent[0]} 趟，下图 {spent[1]} 趟。",
    )
    return figure(s, alt=alt, caption=caption)


def issue(latency: int = 4, warps: tuple[int, ...] = (1, 2, 4), cycles: int = 16) -> str:
    """One scheduler, each warp's next instruction needs its last result `latency` cycles earlier."""
    cell, left, row = 32, 108, 44
    s = Svg(left + cycles * cell + 60, row * len(warps) + 58)
    slots = Grid(s, left, 32, cell, row, gap=(3, 12), rx=3)
    slots.heads({c: c for c in range(0, cycles, latency)}, up=12)
    s.text_from(4, 20, tr("clock cycle", "时钟周期"), "muted")
    shares = []
    for line, count in enumerate(warps):
        slots.named(line, 4, tr(f"{count} warp" + "s" * (count > 1), f"{count} 个线程束"), "")
        ready, issued = [0] * count, []
        for c in range(cycles):
            chosen = min(range(count), key=lambda w: ready[w])
            issued.append(chosen if ready[chosen] <= c else None)
            if issued[-1] is not None:
                ready[chosen] = c + latency
        idle = "hollow dash muted"
        slots.row(line, [idle if w is None else (hue(w), f"W{w}") for w in issued])
        busy = cycles - issued.count(None)
        shares.append(busy / cycles)
        slots.note(line, cycles, f"{busy}/{cycles}", "")
    alt = tr(
        f"Issue slots of one scheduler over {cycles} clock cycles with an instruction latency of {latency} clock cycles. "
        + "; ".join(
            f"{count} warp{'s' * (count > 1)}: {round(share * cycles)} filled"
            for count, share in zip(warps, shares)
        ),
        f"一个调度器在 {cycles} 个时钟周期里的发射槽，指令延迟 {latency} 个时钟周期。"
        + "；".join(
            f"{count} 个线程束填满 {round(share * cycles)} 个"
            for count, share in zip(warps, shares)
        ),
    )
    caption = tr(
        f"Dependent instructions with a latency of {latency} clock cycles on one scheduler: a warp that waits costs nothing as long as another is ready.",
        f"一个调度器，指令前后相依，延迟 {latency} 个时钟周期：只要有别的线程束就绪，等待就不浪费时钟周期。",
    )
    return figure(s, alt=alt, caption=caption)


def memories(drawn: int = 3) -> str:
    """Where the memories are: `drawn` of the SMs, the L2 cache and the global memory; sizes and latencies recorded."""
    sms = int(references.value(f'{EXAMPLE}#where.1["SMs used"].value'))
    width, gap = 700, 16
    sm_w = (width - 52) // drawn - gap  # room at the right for the dots

    def cycles(name: str) -> str:
        return tr(f"{_fact('latency.4', name):.0f} cycles", f"{_fact('latency.4', name):.0f} 周期")

    registers = f"{_fact('spaces', 'registers per SM'):.0f} KiB"
    shared = f"{_fact('spaces', 'shared memory per SM'):.0f} KiB"
    l2 = f"{_fact('spaces', 'L2'):.0f} MiB"
    dram = f"{_fact('spaces', 'global memory'):.0f} GiB"
    s = Svg(width, 330)
    held = tr(f"registers\n{registers}", f"寄存器（每线程私有）\n{registers}")
    text = tr(
        f"shared memory (up to {shared}) / L1\n{cycles('shared memory')} / {cycles('L1')}",
        f"共享内存（至多 {shared}）/ L1\n{cycles('shared memory')} / {cycles('L1')}",
    )
    for i in range(drawn):
        x = 4 + i * (sm_w + gap)
        s.rect(x, 6, sm_w, 150, "hollow muted").text(x + sm_w / 2, 26, f"SM {i}", "bold")
        s.rect(x + 8, 36, sm_w - 16, 46, "c1", held).rect(x + 8, 90, sm_w - 16, 58, "c2", text)
        s.line(x + sm_w / 2, 156, x + sm_w / 2, 178, "axis")
    s.text(width - 20, 88, "…", "bold")
    s.text_to(width - 4, 172, tr(f"{sms} SMs", f"共 {sms} 个 SM"), "muted")
    text = tr(f"L2 cache, {l2}\n{cycles('L2')}", f"L2 缓存，{l2}\n{cycles('L2')}")
    s.rect(4, 178, width - 8, 52, "c3", text).line(width / 2, 230, width / 2, 252, "axis")
    text = tr(
        f"global memory (DRAM), {dram}: also local and constant memory\n{cycles('DRAM')}",
        f"全局内存（DRAM），{dram}：本地内存与常量内存也在这里\n{cycles('DRAM')}",
    )
    s.rect(4, 252, width - 8, 56, "c4", text)
    alt = tr(
        f"Each of the {sms} SMs has registers ({registers}) and one memory for shared memory (up to {shared}) and L1; below them one "
        f"L2 cache of {l2} for all, and below it the global memory of {dram}. Latencies grow from top to bottom.",
        f"{sms} 个 SM 各有寄存器（{registers}）和一块由共享内存（至多 {shared}）与 L1 合用的存储；下面是所有 SM 共用的 {l2} L2 缓存，再下面是 {dram} 的全局内存。越往下延迟越长。",
    )
    caption = tr(
        "Sizes as the driver reports them, latencies as measured above, in cycles of the SM clock.",
        "容量由驱动报告，延迟为上面的实测值，以 SM 时钟周期计。",
    )
    return figure(s, alt=alt, caption=caption)


KS = (1, 4, 16, 64, 256, 1024)  # of the chapter's program


def roofline(bandwidth: float | None = None, fma: float | None = None, points=None) -> str:
    """The roof of this GPU (GB/s and TFLOP/s) and measured points (K, FLOP/B, TFLOP/s); default: as recorded."""
    bandwidth = bandwidth or _fact("predict.0", "bandwidth")
    fma = fma or _fact("predict.0", "fp32")
    if points is None:
        points = [
            (k, 2 * k / 8, references.value(f'{EXAMPLE}#check-roofline["K = {k}"]["TFLOP/s"]'))
            for k in KS
        ]
    ridge, least = 1e3 * fma / bandwidth, bandwidth / 16e3
    across = tr("arithmetic intensity, FLOP/B", "算术强度，FLOP/B")
    field = Roofline((1 / 16, 512), (least / 1.6, fma * 2), bottom=316, across=across)
    field.slope(bandwidth, fma, text=f"{bandwidth:.0f} GB/s")
    field.roof(fma, bandwidth, text=f"{fma:.1f} TFLOP/s")
    for x, y, name in (
        (ridge, fma, tr(f"ridge {ridge:.0f}", f"拐点 {ridge:.0f}")),
        (1 / 12, bandwidth / 12e3, tr("vector add", "向量加法")),
    ):
        field.s.line(*field.at(x, y), field.px(x), field.bottom, "muted dash")
        field.s.text_from(field.px(x) + 6, field.bottom - 10, name, "muted", 12)
    for k, x, y in points:
        name, at = f"K = {k}", field.px(x)
        crossed = at < field.px(ridge) < at + 12 + text_width(name, 12)  # by the line of the ridge
        field.dot(x, y).say(x, y, name, right=-9 if crossed else 9, down=18)
    reached = max(y for _, _, y in points) / fma
    alt = tr(
        f"Roofline: a rising line at {bandwidth:.0f} GB/s meets a level line at {fma:.1f} TFLOP/s at {ridge:.1f} FLOP/B. "
        f"{len(points)} measured points lie along it; the highest reaches {reached:.0%} of the level line.",
        f"roofline：{bandwidth:.0f} GB/s 的斜线与 {fma:.1f} TFLOP/s 的水平线在 {ridge:.1f} FLOP/B 处相交。{len(points)} 个实测点沿线分布，最高点达到水平线的 {reached:.0%}。",
    )
    caption = tr(
        "Both axes are logarithmic. The line is what this GPU can reach, the dots are the rows of the program.",
        "两轴均为对数刻度。线是这块 GPU 能达到的上限，点是程序的各行。",
    )
    return figure(field.s, alt=alt, caption=caption)
