"""Drawings of the chapter on top-k: a limit that rises, digits that close in on a threshold, and who merges the lists."""

import random

from cudatut.site.drawing import Grid, Svg, figure, legend, tr


def rising_limit(n: int = 44, k: int = 4, first: int = 8, room: int = 6, seed: int = 52) -> str:
    """Numbers in the order in which a block reads them, and the limit below which they stay out."""
    generator = random.Random(seed)
    numbers = [generator.randrange(5, 100) for _ in range(n)]
    left, bottom, wide, high = 14, 196, 15, 1.6
    s = Svg(left + n * wide + 14, 244)
    limit, kept, came, prunes = 0, list[int](), 0, 0
    for i, number in enumerate(numbers):
        comes = i < first or number > limit
        if i >= first:
            y = bottom - limit * high
            s.line(left + i * wide, y, left + (i + 1) * wide, y, "accent")
            came += comes
        cls = ("c3" if i < first else "c2") if comes else "hollow"
        s.rect(left + i * wide + 2, bottom - number * high, wide - 4, number * high, cls, rx=1)
        if comes:
            kept.append(number)
        if i == first - 1 or len(kept) > room:
            kept = sorted(kept, reverse=True)[:k]
            limit = kept[-1]
            prunes += i >= first
    legend(
        s,
        left,
        222,
        [
            ("c3", tr("comes in at once", "直接收下")),
            ("c2", tr("above the limit", "高于下限")),
            ("hollow", tr("stays out", "不收")),
        ],
    )
    alt = tr(
        f"{n} numbers as bars in the order in which they are read. The first {first} all come in. From then on a line, the limit, stands at the {k}-th largest so far; {came} of the other {n - first} rise above it. It is raised {prunes} times more.",
        f"{n} 个数按读入的次序画成竖条。前 {first} 个全部收下。此后有一条线，即下限，位于目前第 {k} 大的数；其余 {n - first} 个里有 {came} 个高于它。下限后来又提高 {prunes} 次。",
    )
    caption = tr(
        f"k = {k}: of {n - first} numbers after the first {first}, {came} come in. Whenever more than {room} are kept, all but the best {k} go, and the limit (the line) rises.",
        f"k = {k}：前 {first} 个之后的 {n - first} 个数里收下 {came} 个。收下的一旦超过 {room} 个，就只留最大的 {k} 个，下限（横线）随之提高。",
    )
    return figure(s, alt=alt, caption=caption)


def digits(n: int = 60, k: int = 12, bits: int = 4, seed: int = 41) -> str:
    """Two digits of a selection: counts by the first digit, and by the second among those that share the first."""
    generator = random.Random(seed)
    numbers = sorted((generator.randrange(1 << 2 * bits) for _ in range(n)), reverse=True)
    bins, left, cell = 1 << bits, 118, 32
    s = Svg(left + bins * (cell + 4) + 10, 208)
    need, prefix, found = k, 0, list[tuple[int, int, int]]()
    for level in (0, 1):
        counts = [0] * bins
        for number in numbers:
            if level == 0:
                counts[number >> bits] += 1
            elif number >> bits == prefix:
                counts[number & bins - 1] += 1
        above, digit = 0, bins - 1
        while above + counts[digit] < need:
            above, digit = above + counts[digit], digit - 1
        row = Grid(s, left, 34 + 92 * level, cell + 4, 40, gap=(4, 6), rx=3)
        order = range(bins - 1, -1, -1)
        row.heads([f"{d:X}" for d in order])
        row.row(
            0, [("c3" if d > digit else "c2" if d == digit else "hollow", counts[d]) for d in order]
        )
        name = (
            tr("first digit", "第一位")
            if level == 0
            else tr(f"after {prefix:X}", f"{prefix:X} 之后")
        )
        s.text_to(left - 12, 34 + 92 * level + 24, name, "muted")
        found.append((digit, above, counts[digit]))
        need, prefix = need - above, digit
    (first, above, inside), (second, _, _) = found
    alt = tr(
        f"Counts of {n} numbers by their first digit, from F down to 0. Above digit {first:X} lie {above} numbers, in it {inside}, so the {k}-th largest begins with {first:X}. Counts of these {inside} by their second digit: it is {second:X}.",
        f"{n} 个数按第一位计数，从 F 到 0。第一位大于 {first:X} 的有 {above} 个，等于 {first:X} 的有 {inside} 个，所以第 {k} 大的数以 {first:X} 开头。再把这 {inside} 个按第二位计数：第二位是 {second:X}。",
    )
    caption = tr(
        f"k = {k}. {above} numbers have a larger first digit, and {inside} have {first:X}: the one we look for is number {k - above} of them. Its second digit is {second:X}.",
        f"k = {k}。第一位更大的有 {above} 个，为 {first:X} 的有 {inside} 个：要找的是其中第 {k - above} 大的，第二位是 {second:X}。",
    )
    return figure(s, alt=alt, caption=caption)
