"""Figures of the chapter on FP8: what scales of blocks belong to, and two consumers that take turns at the tensor cores."""

from __future__ import annotations

from cudatut.site.svg import Svg, figure, tr


def scales(blocks: int = 3, rows: int = 6) -> str:
    """A with a scale for each row and 128 steps of depth, B with one for 128 x 128; k runs to the right in both."""
    wide, thin, square = 84, 20, 84
    left, top, gap = 64, 46, 96
    x_b = left + blocks * wide + gap
    s = Svg(x_b + blocks * square + 20, top + max(rows * thin, 2 * square) + 34)
    s.text(left + blocks * wide / 2, 18, tr("A, m × k: 1 × 128", "A，m × k：1 × 128"), "bold")
    s.text(x_b + blocks * square / 2, 18, tr("B, n × k: 128 × 128", "B，n × k：128 × 128"), "bold")
    for block in range(blocks):
        for row in range(rows):
            s.rect(
                left + block * wide,
                top + row * thin,
                wide - 3,
                thin - 3,
                f"c{1 + (block + row) % 6}",
                rx=0,
            )
        for down in range(2):
            s.rect(
                x_b + block * square,
                top + down * square,
                square - 3,
                square - 3,
                f"c{1 + (block + 3 * down) % 6}",
                tr("one\nscale", "一个\n系数"),
                rx=0,
                size=12,
            )
        for x, width in ((left, wide), (x_b, square)):
            s.text(x + block * width + width / 2, top - 8, "128", "muted", size=11)
    s.text(left - 8, top + 13, tr("row 0", "行 0"), "muted", "end", 12)
    s.text(left - 8, top + thin + 13, tr("row 1", "行 1"), "muted", "end", 12)
    for x, width in ((left, blocks * wide), (x_b, blocks * square)):
        y = top + max(rows * thin, 2 * square) + 14
        s.arrow(x, y, x + width - 3, y, "muted")
        s.text(x + width / 2, y + 16, tr("depth k", "深度 k"), "muted", size=12)
    alt = tr(
        f"A has a scale for each row and each 128 steps of depth, here {blocks} for a row; B has one for each square of 128 columns of C and 128 steps.",
        f"A 的每一行、每 128 步深度有一个缩放系数，这里一行有 {blocks} 个；B 的每个方块（C 的 128 列、128 步深度）有一个。",
    )
    caption = tr(
        "Scales of blocks: every tinted piece has one. Both matrices lie with the depth along their lines.",
        "分块缩放：每个着色的小块有一个缩放系数。两个矩阵都按深度方向逐行存放。",
    )
    return figure(s, alt=alt, caption=caption)


def turns(parts: int = 6) -> str:
    """Parts of two consumers, one after the other on the tensor cores; each is added by FMAs under the next one."""
    left, top, high, width = 150, 34, 34, 84
    add = width * 64 // 256
    s = Svg(left + parts * width + add + 20, top + 3 * (high + 12) + 26)
    names = (
        tr("tensor cores", "张量核心"),
        tr("FMAs, consumer 0", "FMA，消费者 0"),
        tr("FMAs, consumer 1", "FMA，消费者 1"),
    )
    for row, name in enumerate(names):
        s.text(left - 12, top + row * (high + 12) + 22, name, "bold", "end", 13)
    for part in range(parts):
        who, x = part % 2, left + part * width
        s.rect(
            x,
            top,
            width - 2,
            high,
            f"c{1 + 2 * who}",
            tr(f"consumer {who}", f"消费者 {who}"),
            rx=0,
            size=12,
        )
        y = top + (1 + who) * (high + 12)
        s.rect(x + width, y, add, high, f"c{1 + 2 * who}", "+", rx=0)
        s.line(x + width - 1, top + high, x + width - 1, y, "muted dash")
    s.text(left, 20, tr("time →", "时间 →"), "muted", "start", 12)
    alt = tr(
        f"{parts} parts on the tensor cores, of consumer 0 and 1 in turns. When a part has ended, its consumer adds it, while the tensor cores multiply for the other.",
        f"张量核心上依次是 {parts} 个部分和，消费者 0 与 1 轮流。一个部分和算完后，它的消费者把它加进总和，同时张量核心为另一个消费者做乘法。",
    )
    caption = tr(
        "Two consumers in turns: 256 cycles of products for a part, 64 cycles of FMAs to add it, if both run at their full rate.",
        "两个消费者轮流：按满速率算，一个部分和的乘法要 256 个周期，把它加进总和的 FMA 要 64 个周期。",
    )
    return figure(s, alt=alt, caption=caption)
