"""Figures of the chapter on epilogues: matrices that pass through memory, and the box that R comes in and C leaves by."""

from cudatut.site.drawing import Svg, figure, tr


def passes() -> str:
    """Three ways to bias, GELU and residual: the kernels, and what each reads and writes of the size of C."""
    product, one, two = tr("product", "乘法"), ("A", "B"), ("C", "R")
    whole = tr("product and all", "乘法与全部尾声")
    rest = tr("bias, GELU, R", "偏置、GELU、R")
    bias, residual = tr("bias", "偏置"), tr("residual", "残差")
    # Each kernel with what it reads; all of them write C.
    ways = (
        (tr("one kernel", "一个 kernel"), ((whole, ("A", "B", "R")),)),
        (tr("two kernels", "两个 kernel"), ((product, one), (rest, two))),
        (
            tr("four kernels", "四个 kernel"),
            ((product, one), (bias, ("C",)), ("GELU", ("C",)), (residual, two)),
        ),
    )
    left, wide, high, gap = 106, 116, 40, 14
    s = Svg(left + 4 * (wide + gap) + 92, 3 * 92 + 12)
    counts = []
    for row, (name, kernels) in enumerate(ways):
        y, total = 12 + row * 92, 0
        s.text_from(8, y + 26, name, "bold")
        for i, (what, reads) in enumerate(kernels):
            x = left + i * (wide + gap)
            s.rect(x, y, wide, high, f"c{1 + i % 5}", what)
            read = tr(f"reads {', '.join(reads)}", f"读 {'、'.join(reads)}")
            s.text(x + wide / 2, y + high + 16, read, "muted", size=11)
            s.text(x + wide / 2, y + high + 31, tr("writes C", "写 C"), "muted", size=11)
            total += len(set(reads) - {*"AB"}) + 1
        x = left + len(kernels) * (wide + gap)
        s.text_from(x, y + 26, tr(f"{total} matrices", f"{total} 个矩阵"), "bold")
        counts.append(total)
    alt = tr(
        f"Bias, GELU and residual by one, two and four kernels: {counts[0]}, {counts[1]} and {counts[2]} matrices of the size of C are read or written.",
        f"用一个、两个、四个 kernel 完成偏置、GELU 与残差：读写与 C 同样大小的矩阵分别为 {counts[0]}、{counts[1]}、{counts[2]} 个。",
    )
    caption = tr(
        "Matrices of the size of C that are read or written, besides A and B.",
        "除 A 和 B 之外，读写的与 C 同样大小的矩阵个数。",
    )
    return figure(s, alt=alt, caption=caption)


def box() -> str:
    """One box of 64 x 64: the TMA brings R, the consumer adds it to its sums, the result leaves from the same box."""
    s = Svg(700, 168)
    s.rect(10, 50, 110, 60, "c3", tr("R\nin memory", "显存里的 R"), rx=4)
    s.rect(250, 50, 130, 60, "c2", tr("box in\nshared memory", "共享内存\n里的盒子"), rx=4)
    s.rect(520, 50, 170, 60, "c1", tr("sums in registers,\nfp32", "寄存器里的\n累加值，fp32"), rx=4)
    s.rect(250, 128, 130, 34, "c3", tr("C in memory", "显存里的 C"), rx=4)
    s.arrow(124, 80, 244, 80, "accent", "1 TMA")
    s.arrow(384, 66, 514, 66, "accent", tr("2 ldmatrix, add", "2 ldmatrix，相加"))
    s.arrow(514, 98, 384, 98, "accent")
    s.text(450, 118, tr("3 round, stmatrix", "3 舍入，stmatrix"), size=12)
    s.arrow(315, 112, 315, 126, "accent").text_to(244, 150, "4 TMA", "", 12)
    s.text(315, 30, tr("1 begins while the products run", "1 在乘法进行时就开始"), "muted")
    alt = tr(
        "The TMA copies a box of R to shared memory, ldmatrix brings it to the sums, stmatrix writes the rounded result into the same box, and the TMA stores it.",
        "TMA 把 R 的一个盒子复制到共享内存，ldmatrix 把 R 读进寄存器，与累加值相加；stmatrix 把舍入后的结果写回同一个盒子，再由 TMA 写出。",
    )
    caption = tr(
        "R arrives in the box from which C leaves.", "R 先放进盒子，C 再从同一个盒子写出。"
    )
    return figure(s, alt=alt, caption=caption)
