"""Figures of the chapter on Blackwell: where operands lie, a pair of blocks, and numbers with a scale."""

from cudatut.site.drawing import Grid, Svg, figure, tr


def operands() -> str:
    """Where A, B and the sums of three generations of instructions are, and who issues them."""
    registers, shared = tr("registers", "寄存器"), tr("shared memory", "共享内存")
    tensor = tr("tensor memory", "张量内存")
    either = tr("registers or\nshared memory", "寄存器或\n共享内存")
    other = tr("shared or\ntensor memory", "共享内存或\n张量内存")
    columns = (
        ("mma.sync", "Ampere", tr("a warp, 32 lanes", "一个线程束，32 个 lane"), [registers] * 3),
        ("wgmma", "Hopper", tr("4 warps together", "4 个线程束一起"), [either, shared, registers]),
        ("tcgen05.mma", "Blackwell", tr("one thread", "一个线程"), [other, shared, tensor]),
    )
    left, wide, step, top = 96, 170, 190, 66
    s = Svg(left + step * 3, top + 4 * 56 + 6)
    cells = Grid(s, left, top, step, 56, gap=(step - wide, 10), rx=4, size=12)
    for row, label in enumerate((tr("issued by", "由谁发射"), "A", "B", tr("sums", "累加值"))):
        cells.name(row, label, "bold", 14, away=14)
    tints = {registers: "c1", shared: "c2", tensor: "c3 solid"}
    for number, (name, gpu, issuer, places) in enumerate(columns):
        x = cells.center(0, number)[0]
        s.text(x, 22, name, "mono bold").text(x, 44, gpu, "muted", size=12)
        for row, text in enumerate((issuer, *places)):
            cells.box(row, number, tints.get(text, "c0"), text)
    rows = "; ".join(
        f"{name}: {issuer}, A {a}, B {b}, {d}".replace("\n", " ")
        for name, _, issuer, (a, b, d) in columns
    )
    alt = tr(
        f"Who issues an instruction, and where A, B and the sums are. {rows}.",
        f"谁发射指令，A、B 与累加值在哪里。{rows}。",
    )
    caption = tr(
        "From generation to generation, operands move away from the threads. On Blackwell no operand of a product is in registers.",
        "操作数一代比一代离线程远。在 Blackwell 上，乘法的操作数都不在寄存器里。",
    )
    return figure(s, alt=alt, caption=caption)


def block(size: int = 16, shown: int = 8) -> str:
    """A block of nvfp4 in memory: bytes of two numbers each, and the byte of the scale; the bits of both."""
    cell, left, top = 62, 20, 60
    pairs = size // 2
    s = Svg(left * 2 + pairs * cell + 84, top + 130)
    title = tr(
        f"{size} numbers of 4 bits in {pairs} bytes", f"{size} 个 4 位浮点数，占 {pairs} 字节"
    )
    s.text(left + pairs * cell / 2, 22, title, "bold")
    cells = Grid(s, left, top, cell, 40, gap=6, size=11)
    cells.row(0, [("c1", f"x{2 * at + 1}  x{2 * at}") for at in range(pairs)])
    cells.heads(range(pairs), up=8)
    x, y = left + pairs * cell + 20, top + 70
    scale = Grid(s, x, top, cell, 40, gap=6, size=11)
    scale.row(0, [("c3", tr("scale", "缩放"))]).heads([tr("elsewhere", "存在别处")], up=8)
    number = ["c5", "c3", "c3", "c1"]
    Grid(s, left, y, 28, gap=2, rx=0).row(0, number * 2)
    Grid(s, x + cell - 8 - 28 * 8, y, 28, gap=2, rx=0).row(0, ["c5"] + ["c3"] * 4 + ["c1"] * 3)
    two = tr(
        "a byte: sign, exponent, mantissa of two numbers", "一个字节：两个数的符号、指数、尾数"
    )
    s.text_from(left, y + 48, two, "", 12)
    s.text_to(x + cell - 8, y + 48, tr("the scale: e4m3", "缩放系数：e4m3"), "", 12)
    alt = tr(
        f"{size} numbers of nvfp4 take {pairs} bytes, two in each, the first in the lower half. A number has a sign, two bits of exponent, one of "
        "mantissa. The scale of the block is a byte of e4m3, kept elsewhere.",
        f"nvfp4 的 {size} 个数占 {pairs} 字节，每字节两个，第一个在低半字节。每个数有 1 位符号、2 位指数、1 位尾数。这一块的缩放系数是一个 e4m3 字节，存放在别处。",
    )
    caption = tr(
        f"A block of nvfp4: {size} numbers and a scale. Every number is multiplied by the scale of its block.",
        f"一块 nvfp4：{size} 个数和一个缩放系数。每个数都要乘上本块的系数。",
    )
    return figure(s, alt=alt, caption=caption)


def pair(rows: int = 128, columns: int = 256) -> str:
    """Two blocks of a pair with their parts of A and B, and the sums that each keeps."""
    left, top, unit = 60, 70, 0.5
    high, wide = rows * unit * 1.4, columns * unit * 1.1
    s = Svg(640, top + 2 * high + 40)
    x_d, x_a = left + 130, left + 40
    s.text(x_d + wide / 2, 22, f"B, {columns}", "bold")
    for half, cls in enumerate(("c1", "c2")):
        y, name = top + half * high, tr(f"block {half}", f"线程块 {half}")
        s.rect(x_d + half * wide / 2, 32, wide / 2 - 4, 26, cls, name, 2, 12)
        s.rect(x_a, y, 80, high - 6, cls, f"A, {rows}\n{name}", 2, 12)
        sums = tr(f"sums of block {half}", f"线程块 {half} 的累加值") + f"\n{rows} × {columns}"
        s.rect(x_d, y, wide - 4, high - 6, cls, sums, 2, 12)
    issued = tr(
        "one instruction,\nissued by one thread\nof the pair",
        "一条指令，\n由其中一个线程块的\n一个线程发射",
    )
    s.text_from(x_d + wide + 16, top + high - 12, issued, "muted", 12)
    alt = tr(
        f"A pair of blocks computes {2 * rows} by {columns} results. Each brings {rows} rows of A and half of the {columns} columns of B, and keeps {rows} "
        f"by {columns} sums.",
        f"一对线程块计算 {2 * rows} x {columns} 个结果。每个线程块搬来 A 的 {rows} 行，以及 B 的 {columns} 列中的一半，并保存 {rows} x {columns} 个累加值。",
    )
    caption = tr(
        "A pair of blocks: each brings its rows of A, and half of the columns of B that both need.",
        "一对线程块：A 的行各搬各的；两者都要用的 B 的列，各搬一半。",
    )
    return figure(s, alt=alt, caption=caption)
