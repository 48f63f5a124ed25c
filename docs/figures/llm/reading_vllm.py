"""The drawing of the chapter on vLLM: the tokens of each step under two sets of rules, from the recorded program."""

from cudatut.site import references
from cudatut.site.drawing import Svg, figure, legend, tr

EXAMPLE = "llm/reading_vllm"


def _rules() -> list[dict[str, list[int]]]:
    """For prefill first and for mixed steps: what each request computes in each step, 0 for nothing."""
    found = (references.table(EXAMPLE, "setup", index) for index in (0, 1))
    return [
        {name: [tokens or 0 for tokens in steps.values()] for name, steps in rows.items()}
        for rows in found
    ]


def steps(budget: int = 8) -> str:
    """The recorded steps; budget: tokens of a mixed step, as the program sets it."""
    return draw(_rules(), budget)


def draw(rules: list[dict[str, list[int]]], budget: int) -> str:
    """A column for each step, as high as the tokens that it computes, in the colors of the requests."""
    names = (tr("prefill first", "提示优先"), tr("mixed", "混合"))
    totals = [[sum(step) for step in zip(*found.values())] for found in rules]
    most, count = max(map(max, totals)), max(map(len, totals))
    left, wide, high, top = 128, 54, 150, 26
    unit, told = high / most, []
    s = Svg(left + wide * count + 10, top + 2 * (high + 44) + 26)
    for k, (name, found, total) in enumerate(zip(names, rules, totals)):
        bottom = top + high + k * (high + 44)
        s.text_from(4, bottom - high / 2, name, "bold")
        for i, tokens in enumerate(total):
            x, y, tall = left + wide * i, bottom, 0.0
            for color, values in zip(("c1", "c3", "c5"), found.values()):
                if values[i]:
                    tall = values[i] * unit
                    y -= tall
                    s.rect(x + 6, y, wide - 12, tall, color, rx=0)
            s.text(x + wide / 2, y + 15 if tall > 20 else y - 5, tokens, size=12)
            s.text(x + wide / 2, bottom + 16, i + 1, "muted", size=12)
        s.line(left, bottom, left + wide * count, bottom, "muted")
        told.append(f"{name}: {', '.join(map(str, total))}")
    s.text_to(left - 10, top + high + 16, tr("step", "步"), "muted", 12)
    limit = top + 2 * high + 44 - budget * unit
    s.line(left, limit, left + wide * count, limit, "dash warn")
    s.text_to(left - 8, limit + 4, tr(f"budget {budget}", f"预算 {budget}"), "warn", 12)
    y = top + 2 * (high + 44) + 2
    legend(s, left, y, zip(("c1", "c3", "c5"), rules[0]), step=90, size=13, wide=20, high=16)
    alt = tr("Tokens computed in each step. ", "每一步计算的词元数。") + "; ".join(told) + "."
    caption = tr(
        "Tokens of each step of the program, from its recording. With prefill first, the long prompt of C has a step of its own, "
        "and A and B get no token in it. In mixed steps it is cut into pieces beside them.",
        "程序每一步的词元数，取自运行记录。提示优先时，C 的长提示独占一步，A 和 B 在这一步没有生成词元。混合时，提示切成几段，与 A、B 同在一步。",
    )
    return figure(s, alt=alt, caption=caption)
