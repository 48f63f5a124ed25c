"""Drawings of the TMA: a box that hangs over the edge of a matrix, the phases of a barrier, and swizzled rows."""

from cudatut.site.drawing import Grid, Svg, figure, tr


def box(rows: int = 7, columns: int = 8, high: int = 4, wide: int = 4, row: int = 5, column: int = 6) -> str:  # fmt: skip
    """A box of high x wide words that begins at (row, column) of a matrix: what of it are zeros."""
    cell, left, top = 30, 40, 34
    shown_rows, shown_columns = max(rows, row + high), max(columns, column + wide)
    x_box = left + shown_columns * cell + 90
    s = Svg(x_box + wide * cell + 20, top + shown_rows * cell + 14)
    s.text_from(left, 20, tr("global memory", "全局内存"), "bold")
    s.text_from(x_box, 20, tr("shared memory", "共享内存"), "bold")

    def inside(r: int, c: int) -> bool:
        return r < rows and c < columns

    def kind(r: int, c: int) -> str | None:
        taken = row <= r < row + high and column <= c < column + wide
        outside = "hollow dash muted" if taken else None
        return ("c1" if taken else "c0") if inside(r, c) else outside

    Grid(s, left, top, cell).fill(shown_rows, shown_columns, kind)
    brought = [[inside(row + r, column + c) for c in range(wide)] for r in range(high)]
    zeros = sum(line.count(False) for line in brought)
    words = Grid(s, x_box, top, cell)
    words.fill(high, wide, lambda r, c: "c1" if brought[r][c] else ("c4", 0))
    s.arrow(x_box - 74, top + high * cell / 2, x_box - 10, top + high * cell / 2, "accent", "TMA")
    alt = tr(
        f"A box of {high} x {wide} words at row {row}, column {column} of a {rows} x {columns} matrix: {high * wide - zeros} words "
        f"are copied, {zeros} zeros are written.",
        f"{rows} × {columns} 矩阵中从第 {row} 行、第 {column} 列开始的 {high} × {wide} 盒子：复制 {high * wide - zeros} 个元素，写入 {zeros} 个零。",
    )
    caption = tr(
        f"A box at row {row}, column {column}, counted from 0. The part beyond the matrix (dashed) arrives as zeros, and the "
        f"barrier counts its bytes, too: {4 * high * wide} bytes for every box.",
        f"从第 {row} 行、第 {column} 列（从 0 数起）开始的一个盒子。超出矩阵的部分（虚线）补零，也计入屏障的字节数，所以总数始终是 {4 * high * wide} 字节。",
    )
    return figure(s, alt=alt, caption=caption)


def phases(stages: int = 3, steps: int = 7) -> str:
    """Which buffer each step reads, and the parity that it waits for: a barrier's phase ends once per round."""
    cell, left, top = 74, 108, 40
    s = Svg(left + steps * cell + 10, top + stages * 40 + 6)
    cells = Grid(s, left, top, cell, 40, gap=(4, 10), rx=3).heads(range(steps), up=18)
    s.text_from(4, 22, tr("step", "步"), "muted")
    for b in range(stages):
        cells.named(b, 4, tr(f"buffer {b}", f"缓冲区 {b}"), "")
    for k in range(steps):
        parity = k // stages % 2
        wait = tr(f"wait {parity}", f"等 {parity}")
        cells.box(k % stages, k, "c1" if parity else "c3", wait)
        if k:
            cells.box((k - 1) % stages, k, "hollow dash", tr("refill", "再装"))
    alt = tr(
        f"{stages} buffers over {steps} steps. Step k waits for buffer k mod {stages} with parity k div {stages} mod 2; the buffer "
        "of the step before is filled again.",
        f"{stages} 个缓冲区，{steps} 步。第 k 步等 k mod {stages} 号缓冲区，奇偶为 ⌊k/{stages}⌋ mod 2；上一步的缓冲区随即重新装填。",
    )
    caption = tr(
        f"Step k waits at the barrier of buffer k mod {stages} for the end of phase ⌊k / {stages}⌋ and names only the parity of "
        "this phase. The buffer of step k − 1 is free by then and is filled again.",
        f"第 k 步在 k mod {stages} 号缓冲区的屏障上等第 ⌊k / {stages}⌋ 个相位结束，只需给出这个相位的奇偶。这时第 k − 1 步的缓冲区已经空出来，可以重新装填。",
    )
    return figure(s, alt=alt, caption=caption)
