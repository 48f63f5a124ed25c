"""The sections of a chapter: the same id, the same order and the same words in every chapter of a language."""

from __future__ import annotations

import re

from cudatut.finding import Finding
from cudatut.site import main_path

# id: (English, Chinese), in the order in which they stand. A chapter has those that apply.
SECTIONS = {
    "goals": ("What you will be able to do", "学完本章你能做什么"),
    "problem": ("The problem", "问题"),
    "kernel": ("The kernel", "kernel 代码"),
    "program": ("The whole program", "完整程序"),
    "predict": ("Predict", "先想一想"),
    "run": ("Run", "运行"),
    "look": ("Look", "看一看"),
    "misconception": ("Where people go wrong", "常见误解"),
    "try": ("Try it", "动手改一改"),
    "exercises": ("Exercises", "练习"),
    "summary": ("Summary", "小结"),
    "sources": ("Sources", "参考资料"),
}
REQUIRED = ("goals", "problem", "predict", "misconception", "exercises", "summary", "sources")
# A prediction may need the kernel, or come before it.
_FREE = {"kernel", "program", "predict"}
_HEADING = re.compile(r"^## (?P<words>.*?)\s*\{:?\s*#(?P<id>[\w-]+)")


def findings(markdown: str, file: str, lang: str) -> list[Finding]:
    """Sections of a chapter that have other words or another order than those of the other chapters."""
    place = {name: number for number, name in enumerate(SECTIONS)}
    found, seen = list[Finding](), list[str]()
    for line in main_path.lines(markdown):
        match = _HEADING.match(line.text) if line.kind == "prose" else None
        if not match or match["id"] not in SECTIONS:
            continue
        at, name = line.number, match["id"]
        words = SECTIONS[name][lang == "zh"]
        if match["words"] != words:
            found.append(Finding(file, at, f"the section '{name}' is called '{words}': write that"))
        before = [other for other in seen if not {other, name} <= _FREE]
        if before and place[before[-1]] > place[name]:
            found.append(
                Finding(file, at, f"the section '{name}' stands before '{before[-1]}': move it up")
            )
        seen.append(name)
    found += [
        Finding(
            file,
            1,
            f"there is no section '## {SECTIONS[name][lang == 'zh']} {{ #{name} }}': write it",
        )
        for name in REQUIRED
        if name not in seen
    ]
    return found
