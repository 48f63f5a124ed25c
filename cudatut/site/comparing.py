"""Sentences that compare what was measured: words that say so, in English and in Chinese.

A ratio that stands in the sentence (`{{ ... }} times as fast`) compares by its number, which is always that of the recording:
such a sentence needs no condition. Neither does a question, nor what should, could or would be.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from cudatut.site import main_path, plain
from cudatut.site.measurements import VALUE

# What a reader is asked for, or told of other people's work; each by the id of its section.
_ELSEWHERE = ("predict", "goals", "exercises", "try", "sources", "recordings")

_A_RATIO = rf"{VALUE}[^.。，,;；]{{0,4}}\s*(?:times|倍|%|％|per cent)[^.。，,;；]{{0,40}}"
_RIVAL = r"(?:cuBLAS\w*|CUB|cuDNN|PyTorch|CuPy|Triton|CUTLASS|NumPy|FlashAttention\S*|the (?:copy|library|vendor)\w*)"
_QUANTITY = r"(?:time|times|cycles|rate|speed|bandwidth|throughput|latency|peak|gain|difference|loss|traffic|energy|power)"

_ENGLISH = re.compile(
    "|".join(
        (
            r"(?<!\bhow much )(?<!\bhow many times )\b(?:faster|fastest|slower|slowest|quicker|quickest)\b",
            r"\b(?:as|so|equally|just as) (?:fast|slow)\b",
            rf"\b(?:is|are|was|were|comes?|lies?) (?:clearly |far |slightly |nearly |well )?(?:ahead|behind)\b(?! of (?:it|them)\b| in \W*{VALUE})",
            rf"\b(?:almost|nearly|about) as (?:long|much|fast|bad|good)\b(?! as\s+{VALUE})",
            r"\bhardly (?:\w+ )?(?:faster|slower|more|less|longer)\b|\b(?:differ|changes?|loses?|gains?|costs?|saves?) (?:only a )?little\b",
            r"\b(?:takes?|took|taking|lasts?) (?:(?:about|almost|nearly|just|twice|half) )?as long\b",
            rf"\b(?:twice|half|double|doubles|halves|doubled|halved) (?:the |its |this |of the )?{_QUANTITY}\b",
            rf"(?<!\bat )\bthe same (?!traffic){_QUANTITY}\b",
            r"\b(?:gains?|gained|saves?|saved|costs?|loses?|lost) (?:almost |nearly |next to )?(?:nothing|little|much|most|no)\b",
            rf"\bmost of (?:the|its|this|that|their|all) (?:\w+ )?{_QUANTITY}\b",
            r"\bno (?:gain|difference|loss)\b|\b(?:does not|do not|did not) (?:help|pay|gain|matter)\b|\bpays? off\b",
            rf"\b(?:ahead of|behind|beats?|outruns?|loses? to|wins? against|keeps? up with) {_RIVAL}\b",
            rf"\b(?:reach(?:es|ed)?|comes? close to|is close to|near) (?:nearly |almost |about )?(?:the|its|this) (?:\w+ )?"
            rf"(?:{_QUANTITY}|limit|roof)\b",
            r"\b(?:takes?|took) (?:far |much |a little |slightly |somewhat )?(?:longer|less time|more time)\b",
            rf"{VALUE}[^.;:]{{0,50}}\b(?:more|less|longer|shorter|higher|lower|fewer) than\b",
            rf"\b(?:more|less|longer|shorter|higher|lower|fewer) than\b[^.;:]{{0,40}}{VALUE}",
        )
    ),
    re.IGNORECASE,
)
_CHINESE = re.compile(
    "|".join(
        (
            r"(?:更|最|较|稍|还|要|略)(?:快|慢)|(?:快|慢)(?:于|得多|一些|一点|不少|很多)|(?:一样|同样)(?:快|慢)",
            r"(?<!相)比[^，。；：]{1,30}?(?:快|慢)(?!速)",
            r"不相上下|差不多(?![大长高宽多])|持平|旗鼓相当|(?:与|和|跟)[^，。；：]{1,24}相当(?!于)",
            r"(?:时间|速度|速率|用时|耗时|带宽|吞吐量|延迟)[^，。；：]{0,8}(?:一样|相同|翻倍|减半|加倍|更长|更短|更高|更低)",
            r"几乎(?:相同|一样)|相差(?:不大|不多|无几)|(?:好几|许多|很多)倍",
            r"(?:时间|周期)(?:大部分|多半|几乎全|主要)(?:都)?[用花耗]在",
            r"(?:一半|两倍|一倍)的?(?:时间|速度|速率|带宽|吞吐量)|(?:时间|速度|速率)[^，。；：]{0,6}(?:的一半|的两倍)",
            r"(?:没有|毫无|几乎没有|没什么|没带来|带不来)(?:任何)?(?:收益|好处|提升|变化|加速|帮助|差别|区别)|不划算|得不偿失",
            r"(?:大部分|多数|绝大部分|大半)的?(?:时间|周期|收益|差距|流量|能量)",
            rf"(?:领先|落后|超过|胜过|输给|不如|不及)[^，。；：]{{0,8}}{_RIVAL}",
            rf"{VALUE}[^。；：]{{0,24}}(?:多于|少于|高于|低于|长于|短于|(?<![找看用得])不到)",
            rf"(?:多于|少于|高于|低于|长于|短于|(?<![找看用得])不到)[^。；：]{{0,16}}{VALUE}",
        )
    )
)
_OPEN = {
    "en": re.compile(r"\b(?:would|should|could|might|suppose|guess)\b|\?$", re.I),
    "zh": re.compile(r"应该|应当|本该|预计|假如|假设|倘若|可能|要是|[？吗]$"),
}
# What people think, in quotes: a chapter says afterwards what is so.
_QUOTED = re.compile(r"^[‘'“\"].*[’'”\"]$", re.DOTALL)
_WORDS = {"en": _ENGLISH, "zh": _CHINESE}
_ENDS = {
    "en": re.compile(r"(?<=[.!?])[\"')\]*]*\s+(?=\S)"),
    "zh": re.compile(r"(?<=[。！？])[”’）*]*\s*"),
}
_ITEM = re.compile(r"^\s*(?:[-*+]|\d+\.)\s")
_NO_SENTENCE = re.compile(r"^\s*(?:\||#|!!!|===|\?\?\?|:::|\[\^|<)")
_CONDITION = re.compile(r"\{\{\s*holds\s[^}]*\}\}")
_MARK = "\x00"  # in the place of a condition


def without_condition(markdown: str, lang: str) -> Iterator[tuple[int, str]]:
    """Line and comparing words of each sentence on the main path of a page that has no condition."""
    for number, sentence in sentences(markdown, lang):
        if _MARK not in sentence and (words := compares(sentence, lang)):
            yield number, words


def compares(sentence: str, lang: str) -> str:
    """The words by which a sentence, as a reader sees it, compares what was measured; "" where it does not."""
    if _OPEN[lang].search(sentence.strip()) or _QUOTED.match(sentence.strip()):
        return ""
    found = _WORDS[lang].search(re.sub(_A_RATIO, " ", sentence))
    return " ".join(found[0].replace(VALUE, "…").split()) if found else ""


def sentences(markdown: str, lang: str) -> Iterator[tuple[int, str]]:
    """The sentences on the main path of a page, each with the line on which it begins, as a reader sees them."""
    paragraph: list[tuple[int, str]] = []
    for line in main_path.lines(markdown):
        ends = line.kind != "prose" or not line.text.strip() or _NO_SENTENCE.match(line.text)
        if paragraph and (ends or _ITEM.match(line.text)):
            yield from _of(paragraph, lang)
            paragraph = []
        if not ends and line.section not in _ELSEWHERE:
            read = plain.plain(_CONDITION.sub(_MARK, line.text))
            paragraph.append((line.number, read.strip()))
    yield from _of(paragraph, lang)


def _of(paragraph: list[tuple[int, str]], lang: str) -> Iterator[tuple[int, str]]:
    text, begins = "", []
    for number, line in paragraph:
        begins.append((len(text), number))
        text += line + " "
    start = 0
    for end in [*(one.end() for one in _ENDS[lang].finditer(text)), len(text)]:
        if text[start:end].strip():
            yield max(number for at, number in begins if at <= start), text[start:end].strip()
        start = end
