"""Drawings of images/scoreboard: which plane of a result needs which planes of the image, and what a thread of a depthwise kernel reads."""

from cudatut.site.drawing import Grid, Svg, figure, tr


def planes(channels: int = 4) -> str:
    """On the left each filter reads all channels; on the right its own."""
    wide, high, step, top = 76, 34, 46, 46
    s = Svg(700, top + channels * step + 14)
    for left, own, title in (
        (30, False, tr("plain: a filter sees all channels", "普通卷积：一个滤波器看所有通道")),
        (
            390,
            True,
            tr("depthwise: a filter sees one channel", "逐通道卷积：一个滤波器看一个通道"),
        ),
    ):
        s.text_from(left, 20, title, "bold")
        right = left + 200
        for i in range(channels):
            for j in range(channels):
                if not own or i == j:
                    s.line(
                        left + wide,
                        top + i * step + high / 2,
                        right,
                        top + j * step + high / 2,
                        "accent" if own else "muted",
                    )
        for i in range(channels):
            y = top + i * step
            s.rect(left, y, wide, high, "c1", tr(f"channel {i}", f"通道 {i}"), size=12)
            s.rect(right, y, wide, high, "c2", tr(f"result {i}", f"结果 {i}"), size=12)
    alt = tr(
        f"Left: {channels} channels of an image, each connected with each of {channels} results. Right: each channel connected with the result of the same number alone.",
        f"左边：图像的 {channels} 个通道，每个都与 {channels} 个结果全部相连。右边：每个通道只与同号的结果相连。",
    )
    caption = tr(
        f"{channels} channels: {channels**2} windows for each pixel of the results on the left, {channels} on the right.",
        f"{channels} 个通道：结果的每个像素，左边要算 {channels**2} 个窗口，右边只要 {channels} 个。",
    )
    return figure(s, alt=alt, caption=caption)


def strip(window: int = 3, across: int = 4, down: int = 7) -> str:
    """The words of the image that a thread reads for a strip of results, in aligned vectors."""
    half, cell, top = window // 2, 24, 58
    before = -(-half // across) * across
    columns, rows = before + across + -(-half // across) * across, down + 2 * half
    left, right = 16, 16 + columns * cell + 90
    s = Svg(right + across * cell + 120, top + rows * cell + 16)
    s.text_from(left, 20, tr("words of the image", "图像里的字"), "bold")
    s.text_from(right, 20, tr("results of a thread", "一个线程的结果"), "bold")
    image = Grid(s, left, top, cell, cell)
    for y in range(rows):
        cells = []
        for x in range(columns):
            at = x - before
            needed = -half <= at < across + half
            own = 0 <= at < across
            cells.append(("c1" if own else "c2" if needed else "c0", ""))
        image.row(y, cells)
    for i in range(columns // across + 1):
        x = left + i * across * cell
        s.line(x, top - 8, x, top + rows * cell + 8, "accent")
    for i in range(columns // across):
        s.text(
            left + (i + 0.5) * across * cell,
            top - 14,
            tr("a vector", "一个向量"),
            "muted",
            size=12,
        )
    results = Grid(s, right, top + half * cell, cell, cell)
    for y in range(down):
        results.row(y, [("c4", "")] * across)
    words = across + 2 * half
    alt = tr(
        f"Left: {rows} rows of {columns} words, in vectors of {across}. Of each row a thread needs the {across} words in the middle vector, and {half} on either side. Right: its strip of {down} rows of {across} results.",
        f"左边：{rows} 行，每行 {columns} 个字，按 {across} 个一组分成向量。每一行里，线程需要中间向量的 {across} 个字，以及两侧各 {half} 个。右边：它算出的一条，{down} 行，每行 {across} 个结果。",
    )
    caption = tr(
        f"A window of {window} × {window}: {rows} × {words} words for {down} × {across} results, where a thread for each result would read {window * window} words for one.",
        f"{window} × {window} 的窗口：{down} × {across} 个结果要读 {rows} × {words} 个字；若每个线程只算一个结果，每个结果就要读 {window * window} 个字。",
    )
    return figure(s, alt=alt, caption=caption)
