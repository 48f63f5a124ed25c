"""Drawings of the chapter on resizing: centers on an axis, the four pixels around a center, and rows that several rows need."""

from fractions import Fraction
from math import floor

from cudatut.site.drawing import Svg, figure, legend, tr


def axis(n: int = 7, to: int = 5, shown: int = 1) -> str:
    """An axis of n pixels above one of `to` pixels; where the centers lie, and the two weights of one of them."""
    left, wide = 96, 600
    s = Svg(left + wide + 14, 196)
    unit, other = wide / n, wide / to
    for i in range(n):
        s.rect(left + i * unit + 1, 40, unit - 2, 36, "c1", rx=1)
        s.text(left + (i + 0.5) * unit, 30, i, "muted", size=12)
        s.circle(left + (i + 0.5) * unit, 58, 3, "c1 solid")
    for i in range(to):
        s.rect(left + i * other + 1, 130, other - 2, 36, "c3" if i == shown else "hollow", rx=1)
        s.text(left + (i + 0.5) * other, 186, i, "muted", size=12)
        s.circle(left + (i + 0.5) * other, 148, 3, "c3 solid")
    at = Fraction(2 * shown + 1, 2) * Fraction(n, to) - Fraction(1, 2)
    low = floor(at)
    x = left + (shown + 0.5) * other
    s.line(x, 142, x, 58, "c3 dash")
    for i, weight in ((low, 1 - (at - low)), (low + 1, at - low)):
        there = left + (i + 0.5) * unit
        s.line(x, 100, there, 64, "muted")
        s.text(there, 94, f"{float(weight):.2f}".rstrip("0"), "bold", size=13)
    s.text_to(left - 12, 63, tr("image", "图像"), "muted")
    s.text_to(left - 12, 153, tr("output", "输出"), "muted")
    low_weight, high_weight = (f"{float(w):.2f}".rstrip("0") for w in (1 - (at - low), at - low))
    alt = tr(
        f"Two bars of the same length: {n} pixels of the image above, {to} of the output below, each with a point in its middle. The center of output pixel {shown} lies between the centers of pixels {low} and {low + 1}, whose weights are {low_weight} and {high_weight}.",
        f"两条等长的横条：上面是图像的 {n} 个像素，下面是输出的 {to} 个像素，每个像素中间有一个点。输出像素 {shown} 的中心落在像素 {low} 与 {low + 1} 的中心之间，权重为 {low_weight} 和 {high_weight}。",
    )
    caption = tr(
        f"{n} pixels become {to}. The center of pixel {shown} lies at ({shown} + 1/2) · {n}/{to} - 1/2 = {float(at):.1f}, counted from the center of pixel 0: between pixels {low} and {low + 1}.",
        f"{n} 个像素变为 {to} 个。从像素 0 的中心算起，像素 {shown} 的中心位于 ({shown} + 1/2) · {n}/{to} - 1/2 = {float(at):.1f}，在像素 {low} 与 {low + 1} 之间。",
    )
    return figure(s, alt=alt, caption=caption)


def areas(across: float = 0.3, down: float = 0.6) -> str:
    """The four pixels around a center; each one's weight is the area opposite to it."""
    left, top, side = 230, 24, 190
    s = Svg(650, top + side + 48)
    x, y = left + across * side, top + down * side
    parts = {  # the area opposite to a corner has its color
        "c1": (x, y, left + side, top + side),
        "c2": (left, y, x, top + side),
        "c3": (x, top, left + side, y),
        "c4": (left, top, x, y),
    }
    weights = {
        "c1": (1 - across) * (1 - down),
        "c2": across * (1 - down),
        "c3": (1 - across) * down,
        "c4": across * down,
    }
    for cls, (x0, y0, x1, y1) in parts.items():
        s.rect(x0, y0, x1 - x0, y1 - y0, cls, f"{weights[cls]:.2f}", rx=0)
    corners = {
        "c1": (left, top, tr("before, above", "左上")),
        "c2": (left + side, top, tr("behind, above", "右上")),
        "c3": (left, top + side, tr("before, below", "左下")),
        "c4": (left + side, top + side, tr("behind, below", "右下")),
    }
    for cls, (cx, cy, name) in corners.items():
        s.circle(cx, cy, 8, f"{cls} solid")
        if cx == left:
            s.text_to(cx - 16, cy + 5, name)
        else:
            s.text_from(cx + 16, cy + 5, name)
    s.circle(x, y, 5, "accent solid")
    told = ", ".join(f"{weights[cls]:.2f}" for cls in ("c1", "c2", "c3", "c4"))
    alt = tr(
        f"A square whose corners are the centers of four pixels. A point in it parts it into four areas. The weight of each corner is the area opposite to it: {told}.",
        f"一个正方形，四角是四个像素的中心。里面一点把它分成四块。每个角的权重是对角那一块的面积：{told}。",
    )
    caption = tr(
        f"The center lies {across} to the right of the pixel before it and {down} below it. A pixel has the weight of the area opposite to it, of the same color.",
        f"中心在左上像素右边 {across}、下边 {down} 处。每个像素的权重是对角那块同色区域的面积。",
    )
    return figure(s, alt=alt, caption=caption)


def kept(rows: int = 8, n: int = 8, to: int = 16, first: int = 4) -> str:
    """Which rows of the image the rows of one thread lie between, where `n` rows become `to`."""
    taps = []
    for y in range(first, first + rows):
        at = min(
            max(Fraction(2 * y + 1, 2) * Fraction(n, to) - Fraction(1, 2), Fraction(0)),
            Fraction(n - 1),
        )
        low = floor(at)
        taps.append((low, min(low + 1, n - 1)))
    needed = sorted({one for pair in taps for one in pair})
    left, wide, step = 130, 200, 26
    s = Svg(620, rows * step + 66)
    right = left + wide + 60
    start = 24 + (rows - len(needed)) * step / 2
    for i, row in enumerate(needed):
        s.rect(left, start + i * step, wide, step - 4, f"c{1 + i % 6}", row, rx=2, size=12)
    for i, (low, high) in enumerate(taps):
        y = 24 + i * step
        for row, x in ((low, right), (high, right + wide / 2)):
            s.rect(
                x, y, wide / 2 - 2, step - 4, f"c{1 + needed.index(row) % 6}", row, rx=2, size=12
            )
        s.text_from(right + wide + 10, y + 16, first + i, "muted", size=12)
    s.text_to(
        left - 12, start + len(needed) * step / 2, tr("rows of\nthe image", "图像的行"), "muted"
    )
    s.text(
        right + wide / 2,
        rows * step + 46,
        tr("rows of the output: above, below", "输出的行：上一行，下一行"),
        "muted",
    )
    s.text(
        left + wide / 2,
        rows * step + 46,
        tr("loaded and blended once", "各读一次、混合一次"),
        "muted",
    )
    loads = 2 * rows
    alt = tr(
        f"{rows} rows of the output, each between two rows of the image. They need {loads} rows if each row loads its own two, but only {len(needed)} different ones.",
        f"输出的 {rows} 行，每行位于图像的两行之间。各自读取要读 {loads} 行，其实不同的只有 {len(needed)} 行。",
    )
    caption = tr(
        f"Twice as many rows, drawn for {rows} rows of a thread: they lie between {len(needed)} rows of the image. Loaded for each row anew, these are {loads}.",
        f"行数加倍，按一个线程 {rows} 行画出：它们位于图像的 {len(needed)} 行之间；如果每行都重新读取，就是 {loads} 行。",
    )
    return figure(s, alt=alt, caption=caption)


def mistakes(n: int = 2, to: int = 16) -> str:
    """What each of the two mistakes of a position does, along an axis of n pixels that becomes one of `to`."""
    left, wide, high = 96, 560, 120
    s = Svg(left + wide + 14, high + 84)
    values = (0.15, 0.85)

    def right(at):
        at = min(max(at, 0), n - 1)
        low = min(floor(at), n - 2)
        return values[low] * (1 - (at - low)) + values[low + 1] * (at - low)

    lines: dict[str, list[tuple[float, float]]] = {"c1": [], "c2": []}
    for x in range(to):
        center = left + (x + 0.5) * wide / to
        lines["c1"].append((center, 20 + high * (1 - right((x + 0.5) * n / to - 0.5))))
        lines["c2"].append((center, 20 + high * (1 - right(x * n / to))))
    for cls, points in lines.items():
        s.polyline(points, cls)
        for point in points:
            s.circle(*point, 3, f"{cls} solid")
    s.line(left, 20 + high, left + wide, 20 + high, "axis")
    for i in range(n):
        s.text(
            left + (i + 0.5) * wide / n,
            20 + high + 18,
            tr(f"center of pixel {i}", f"像素 {i} 的中心"),
            "muted",
            size=12,
        )
        s.line(left + (i + 0.5) * wide / n, 20 + high, left + (i + 0.5) * wide / n, 20, "axis dash")
    legend(
        s,
        left,
        20 + high + 38,
        [("c1 solid", tr("by centers", "按中心")), ("c2 solid", tr("by corners", "按角"))],
    )
    shift = (to / n - 1) / 2
    alt = tr(
        f"Brightness along {to} pixels between two pixels of the image, by centers and by corners. The second line is the first, moved to the left by {shift:.1f} pixels.",
        f"图像两个像素之间 {to} 个输出像素的亮度，按中心和按角两种算法。第二条线是第一条向左移动 {shift:.1f} 个像素。",
    )
    caption = tr(
        f"{n} pixels become {to}. By corners everything lies ({to // n} - 1) / 2 = {shift:.1f} pixels too far left.",
        f"{n} 个像素变为 {to} 个。按角计算，一切都偏左 ({to // n} - 1) / 2 = {shift:.1f} 个像素。",
    )
    return figure(s, alt=alt, caption=caption)
