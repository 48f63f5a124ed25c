"""Drawings for mma.sync: where the eight rows of a matrix of ldmatrix stand, and the tile of a block divided among warps."""

from __future__ import annotations

from cudatut.site.svg import Svg, figure, tr


def layouts(piece: int = 3) -> str:
    """One piece of eight lines in three layouts; a column is a group of four banks."""
    cell, high, top, gap = 24, 20, 66, 44
    kinds = (
        (tr("lines of 128 bytes", "每行 128 字节"), lambda row: piece),
        (tr("padded to 144 bytes", "填充到 144 字节"), lambda row: (piece + row) % 8),
        (tr("swizzled", "异或重排"), lambda row: piece ^ row % 8),
    )
    s = Svg(20 + 3 * (8 * cell + gap), top + 8 * high + 34)
    for k, (title, group) in enumerate(kinds):
        x0 = 14 + k * (8 * cell + gap)
        s.text(x0, 20, title, "bold", "start")
        for g in range(8):
            s.text(x0 + g * cell + cell / 2, 52, 4 * g, "muted", size=10)
        groups = [group(row) for row in range(8)]
        for row in range(8):
            for g in range(8):
                cls = "c1" if groups[row] == g else "hollow"
                s.rect(
                    x0 + g * cell,
                    top + row * high,
                    cell - 2,
                    high - 2,
                    cls,
                    row if groups[row] == g else None,
                    rx=2,
                    size=10,
                )
        worst = max(groups.count(g) for g in groups)
        s.text(x0, top + 8 * high + 22, tr(f"passes: {worst}", f"趟数：{worst}"), "muted", "start")
    alt = tr(
        f"Piece {piece} of eight lines in three layouts. Without padding or swizzle all eight are in the same four banks; in the other two each is in "
        "four banks of its own.",
        f"八行的第 {piece} 块在三种布局中的位置。不填充也不重排时，八块都在同样四个存储体里；另外两种布局中，每块各占四个存储体。",
    )
    caption = tr(
        f"What `ldmatrix` reads for one matrix: piece {piece} of eight lines. A column is four banks, named by the first; the number is the line.",
        f"`ldmatrix` 为一个矩阵读取的内容：八行的第 {piece} 块。每列是四个存储体，以第一个命名；数字是行号。",
    )
    return figure(s, alt=alt, caption=caption)


def warps(rows: int = 128, columns: int = 256, warp_rows: int = 64, warp_columns: int = 64) -> str:
    """The tile of a block, divided among its warps, and which rows and columns one of them reads."""
    scale, left, top = 1.1, 150, 70
    s = Svg(left + columns * scale + 250, top + rows * scale + 30)
    mine = columns // warp_columns + 1
    for w in range(rows // warp_rows * (columns // warp_columns)):
        r, c = (
            w // (columns // warp_columns) * warp_rows,
            w % (columns // warp_columns) * warp_columns,
        )
        cls = "c1" if w == mine else "hollow"
        s.rect(left + c * scale, top + r * scale, warp_columns * scale - 2, warp_rows * scale - 2, cls, tr(f"warp {w}", f"线程束 {w}"), rx=3)  # fmt: skip
    r, c = (
        mine // (columns // warp_columns) * warp_rows,
        mine % (columns // warp_columns) * warp_columns,
    )
    s.rect(left - 60, top + r * scale, 48, warp_rows * scale - 2, "c2", "A", rx=3)
    s.rect(left + c * scale, 14, warp_columns * scale - 2, 44, "c3", "B", rx=3)
    x = left + columns * scale + 24
    s.text(
        x, top + 24, tr(f"block: {rows} x {columns}", f"线程块：{rows} × {columns}"), "", "start"
    )
    s.text(
        x,
        top + 46,
        tr(f"a warp: {warp_rows} x {warp_columns}", f"线程束：{warp_rows} × {warp_columns}"),
        "",
        "start",
    )
    s.text(x, top + 68, tr(f"sums of a lane: {warp_rows * warp_columns // 32}", f"每个 lane 的累加值：{warp_rows * warp_columns // 32}"), "muted", "start")  # fmt: skip
    alt = tr(
        f"A tile of {rows} x {columns} divided among {rows // warp_rows * (columns // warp_columns)} warps. Warp {mine} reads {warp_rows} rows of A and "
        f"{warp_columns} columns of B.",
        f"{rows} × {columns} 的分块分给 {rows // warp_rows * (columns // warp_columns)} 个线程束。线程束 {mine} 读取 A 的 {warp_rows} 行和 B 的 {warp_columns} 列。",
    )
    caption = tr(
        f"Each warp reads its {warp_rows} rows of A and {warp_columns} columns of B from shared memory; those beside it and below it read parts of the same.",
        f"每个线程束从共享内存读取自己的 A 的 {warp_rows} 行和 B 的 {warp_columns} 列；旁边和下面的线程束会重复读取其中的部分。",
    )
    return figure(s, alt=alt, caption=caption)
