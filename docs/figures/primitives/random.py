"""Drawings of primitives/random: a round of Philox, and which counter an element comes from."""

from cudatut.site.drawing import Svg, figure, tr


def one_round() -> str:
    """The four words of a counter, two products, and the four words after a round."""
    s = Svg(712, 306)
    xs, wide = (60, 220, 380, 540), 92
    for x, name in zip(xs, "xyzw"):
        s.rect(x, 12, wide, 36, "c1", name)
        s.rect(x, 258, wide, 36, "c1", f"{name}'")
    for x, factor, name in ((60, "A", "a"), (380, "B", "b")):
        s.arrow(x + wide / 2, 50, x + wide / 2, 84)
        s.rect(x - 20, 86, 132, 36, "c3", f"{name} = {factor} · {'x' if name == 'a' else 'z'}")
        upper, lower = (x - 20, x + 46) if name == "a" else (x + 46, x - 20)
        s.rect(upper, 122, 66, 30, "c2", tr("upper", "高位"), size=12)
        s.rect(lower, 122, 66, 30, "c2", tr("lower", "低位"), size=12)
    for x, key in ((60, "k0"), (380, "k1")):
        s.rect(x, 176, wide, 24, "c0", f"xor  {key}", size=13)
        s.arrow(x + wide / 2, 202, x + wide / 2, 256)
    # The upper half of b and y make x'; the upper half of a and w make z'.
    s.arrow(459, 154, 130, 174, "accent")
    s.arrow(73, 154, 400, 174, "warn")
    s.arrow(266, 50, 154, 188, "muted")
    s.arrow(586, 50, 474, 188, "muted")
    # The lower halves go on as they are.
    s.arrow(393, 154, 280, 256, "accent")
    s.arrow(139, 154, 560, 256, "warn")
    alt = tr(
        "A round. The words are x, y, z and w. x is multiplied by A and z by B, each product with an upper and a lower word. The new x is the upper word of b, y and a word of the key, joined by exclusive or; the new y is the lower word of b. The new z is the upper word of a, w and the other word of the key; the new w is the lower word of a.",
        "一轮。四个字是 x、y、z、w。x 乘以 A，z 乘以 B，每个乘积分成高位字和低位字。新的 x 是 b 的高位字、y 与密钥的一个字的异或；新的 y 是 b 的低位字。新的 z 是 a 的高位字、w 与密钥的另一个字的异或；新的 w 是 a 的低位字。",
    )
    caption = tr(
        "One of ten rounds. A and B are constants; the key changes by constants from round to round.",
        "十轮中的一轮。A 和 B 是常数；密钥每轮加上常数。",
    )
    return figure(s, alt=alt, caption=caption)


def counters(elements: int = 12) -> str:
    """Which counter and which of its words an element comes from."""
    cell, left, top = 46, 96, 16
    s = Svg(left + elements * cell + 8, 176)
    blocks = -(-elements // 4)
    for c in range(blocks):
        s.rect(left + 4 * c * cell, top, 4 * cell - 6, 34, "c3", f"{c}")
        s.arrow(left + (4 * c + 2) * cell - 3, top + 36, left + (4 * c + 2) * cell - 3, top + 62)
        s.rect(left + 4 * c * cell, top + 64, 4 * cell - 6, 30, "c0", "Philox")
    for i in range(elements):
        s.arrow(left + (i + 0.5) * cell - 3, top + 96, left + (i + 0.5) * cell - 3, top + 116)
        s.rect(left + i * cell, top + 118, cell - 6, 32, "c1", f"{i}")
    for y, words in ((top + 22, tr("counter", "计数器")), (top + 138, tr("element", "元素"))):
        s.text(4, y, words, "muted", "start", 13)
    alt = tr(
        f"{blocks} counters, 0 to {blocks - 1}. Each goes through Philox and gives four elements: counter 0 the elements 0 to 3, and so on.",
        f"{blocks} 个计数器，0 到 {blocks - 1}。每个经过 Philox 得到四个元素：计数器 0 得到元素 0 到 3，依此类推。",
    )
    caption = tr(
        "Element i is word i % 4 of counter i / 4, whichever thread computes it.",
        "元素 i 是计数器 i / 4 的第 i % 4 个字，与由哪个线程计算无关。",
    )
    return figure(s, alt=alt, caption=caption)
