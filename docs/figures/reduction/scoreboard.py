"""Drawings of summation orders: how many additions an element passes, one after another and in a tree."""

from cudatut.site.drawing import Grid, Svg, figure, tr

_CELL, _ROW = 40, 44


def orders(n: int = 8) -> str:
    """A chain and a tree over n elements (a power of two); the path of element 0 in the warning color."""
    rounds = n.bit_length() - 1
    half = n * _CELL + 24
    s = Svg(2 * half + 20, 60 + _ROW * (n - 1))
    for left, name in ((0, tr("one after another", "逐个相加")), (half + 20, tr("tree", "树"))):
        s.text(left + n * _CELL / 2, 16, name, "bold")
        elements = Grid(s, left, 26, _CELL, 32, gap=6, rx=4)
        elements.row(0, [("c0" if i else "c2", i) for i in range(n)])
    x, y = (_CELL - 6) / 2, 52.0
    for i in range(1, n):
        to = i * _CELL + (_CELL - 6) / 2
        below = 52 + _ROW * (i - 1) + 30
        s.line(x, y, to, below, "c2")
        s.line(to, 52, to, below, "axis")
        s.circle(to, below, 8, "c2", "+")
        x, y = to, below + 8
    places = [half + 20 + i * _CELL + (_CELL - 6) / 2 for i in range(n)]
    top = 52.0
    for level in range(rounds):
        below = 52 + _ROW * level + 30
        joined = []
        for k in range(0, len(places), 2):
            middle = (places[k] + places[k + 1]) / 2
            cls = "c2" if k == 0 else "c1"
            s.line(places[k], top, middle, below, cls)
            s.line(places[k + 1], top, middle, below, "axis")
            s.circle(middle, below, 8, cls, "+")
            joined.append(middle)
        places, top = joined, below + 8
    alt = tr(
        f"{n} elements added one after another and in a tree: on its way element 0 passes {n - 1} additions in the chain "
        f"and {rounds} in the tree.",
        f"{n} 个元素，逐个相加与按树形相加：元素 0 在链上要经过 {n - 1} 次加法，在树上只经过 {rounds} 次。",
    )
    caption = tr(
        f"Both take {n - 1} additions. Element 0 is rounded {n - 1} times in the chain and {rounds} times in the tree; "
        f"for 2²⁰ elements it would be {2**20 - 1:,} and 20.",
        f"两种次序都做 {n - 1} 次加法。元素 0 在链上要经过 {n - 1} 次舍入，在树上只有 {rounds} 次；如果是 2²⁰ 个元素，就是 {2**20 - 1:,} 次与 20 次。",
    )
    return figure(s, alt=alt, caption=caption)
