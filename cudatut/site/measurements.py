"""The grammar of a measurement in prose, English and Chinese: a number with a unit, or in a comparison.

Each word becomes a letter, each clause a string of them: `half as fast` is `f.q`, 三分之一的时间 is `fOq`, `38 requests per
second` is `n./s`. What a measurement looks like is said on these strings, for both languages at once:

- a number with a unit of time, rate, energy or share: `12 µs`, `twelve microseconds`, `2.7 instructions per cycle`, 九成;
- a multiple or a part of what only a run tells: `half as fast`, `38 times the speed`, 快两倍, 三分之一的时间;
- a ratio that says so: `a speedup of 18.8`, 加速比为 18.8.

`half of the threads`, `twice the bytes` and `32 KB` are none of these: sizes and counts follow from the code.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

# --- words: a letter for each kind -----------------------------------------------------------------

# Of figures: n a number, D one with a decimal point, I the figure 1. M is a measurement by itself, R a ratio in general, P 'per
# second' as a power, o what does not count; '.' is any other word, '_' any other Chinese character, '#' a value that is no
# typed number, '|' the end of a clause. All others:
_WORDS = {
    # 1, c: a number in words; f: a part of one; a: an article, which is also 'per' (3 TB a second)
    "1": "one",
    "c": """two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen
        nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand million billion dozen""",
    "f": """half halves third thirds quarter quarters fourth fourths fifth fifths sixth sixths seventh sevenths eighth
        eighths ninth ninths tenth tenths twentieth hundredth hundredths thousandth thousandths 一半 大半""",
    "a": "a an",
    "+": "and point",
    # x: makes a multiple of a number; t: is one itself
    "x": "times fold",
    "X": "倍",
    "t": """twice thrice double doubles doubled doubling halve halves halved halving triple triples tripled quadruple
        quadrupled twofold threefold fourfold fivefold sixfold sevenfold eightfold ninefold tenfold hundredfold
        thousandfold 减半 折半 翻倍 翻番 加倍 倍增""",
    # s: a unit of time; y: one of which 'one' measures nothing (one FMA per cycle, for one minute); k: only behind 'per'
    "s": """nsec usec msec nanosecond nanoseconds microsecond microseconds millisecond milliseconds 纳秒 微秒 毫秒""",
    "y": "sec secs second seconds min mins minute minutes hour hours cycle cycles 秒 秒钟 分钟 小时 周期 时钟周期",
    "k": "clk clock joule watt",
    # u: any other unit of a measurement
    "u": """percent pct degrees watts joules hertz kilohertz megahertz gigahertz kilowatt kilowatts
        teraflops gigaflops petaflops
        瓦 瓦特 千瓦 毫瓦 焦 焦耳 毫焦 微焦 赫 赫兹 千赫 兆赫 吉赫 百分点 数量级 摄氏度""",
    "/": "per",
    "e": "each every",
    "E": "每 每个",
    # r: a ratio of measurements; q: what only a run tells; v: a rival, whose speed is meant where it stands alone
    "r": "加速比",
    "q": """fast faster fastest slow slower slowest quick quicker quickly sooner speed speeds throughput bandwidth latency
        peak rate rates performance time runtime longer duration power energy gain efficient efficiency utilization
        deliver delivers frequency
        快 慢 速度 速率 时间 耗时 用时 时长 延迟 吞吐 吞吐量 吞吐率 带宽 性能 峰值 功耗 能耗 提速 加速 效率 能效 频率 算力 利用率""",
    "v": "cuBLAS cuBLASLt cublasLt cuDNN CUB CUTLASS PyTorch NumPy CuPy Triton",
    # words that stand between
    "O": "of the its their our that again 的 了",
    "w": "what 所能",
    "g": "个 多 余 几",
    "i": "for from with within after until to at on by",
}
# Units with a prefix, whose case matters.
_UNITS = {
    "s": r"[nuµμm]?s|[nuµμm]sec",
    "u": r"[mkM]?W|[fpnuµμmk]?J|[kMG]?Hz|[kKMGTPE][Ff][Ll][Oo][Pp][Ss]",
}
_UNIT_LETTER = {letter: re.compile(pattern) for letter, pattern in _UNITS.items()}
_LETTER = {word: letter for letter, words in _WORDS.items() for word in words.split()}

# What stands for a number that is no typed one: a reference, or what is told with its source.
VALUE = "◆"

_ZH = "零〇一二两三四五六七八九十百千万亿"
_NUMBER_ZH = rf"[{_ZH}]+(?:点[{_ZH}]+)?"
_CHINESE = "|".join(sorted((word for word in _LETTER if not word.isascii()), key=len, reverse=True))
# Digits that are a value of their own: not the tail of a name (H100), a version, an address (sm_90) or a decade (1990s).
_FIGURES = (
    r"(?<![\w.#/&;^])(?<![A-Za-z^]-)(?!(?:19|20)\d0s\b)\d+(?:[,_]\d+)*(?:\.\d+)?(?:[eE][+-]?\d+)?"
    r"(?:\s*[×x·*]\s*10\s*(?:\^\s*[-−+]?\d+|[⁻⁺⁰¹²³⁴-⁹]+))?(?:\s*(?:±|\+/-)\s*\d+(?:\.\d+)?\)?)?|[½¼¾⅓⅔⅕⅛]"
)
# The first that fits; the name of a group is its letter. ASCII: Chinese has no blanks, so in 快了38倍 a number begins at 3.
_TOKEN = re.compile(
    "|".join(
        (
            rf"(?P<M>[百千万]分之\s*(?:[\d.]+|{_NUMBER_ZH}))",
            rf"(?P<f>(?<![\w.#/&;])\d+/\d+(?![\d/])|[{_ZH}]+分之[{_ZH}]+|半(?=[纳微毫]?秒|个(?:时钟)?周期))",
            rf"(?P<n>{_FIGURES})",
            r"(?P<u>per\s+cent\b|percentage\s+points?\b|orders?\s+of\s+magnitude\b|°\s?C\b|[℃%％‰]"
            rf"|成(?![为员本功立分果熟就对倍])|(?<=[{_ZH}\d])\s?度)",
            r"(?P<R>factor\s+of\b|(?:ratio|quotient)s?\b|hit\s+rates?\b|比值|比率|命中率)",
            r"(?P<r>[Ss]peed-?ups?\b|[Ss]low-?downs?\b)",
            r"(?P<t>翻了?[一二两三四]番)",
            r"(?P<P>(?:·|(?<=\w)\s)s(?:⁻¹|\^\{?[-−]1\}?))",
            # A ratio, not a shape: 32 x 32, 2×n and 4 × `N` are sizes.
            r"(?P<X>(?:(?<=\d)|(?<=\d\s))[×xX](?!\w)(?!\s*(?:\d|[A-Za-zα-ω]\b|[¤(])))",
            r"(?P<q>(?:as|so|takes?|took)\s+long\b)",
            # Vague numbers, halves that measure nothing, and time that is no duration: none of these counts.
            rf"(?P<o>几[{_ZH}]+|一两|[前后另]一半|(?:by|in|into)\s+halves\b"
            r"|(?:few|several|many)\s+(?:hundred|thousand|million|dozen|times)s?\b"
            r"|(?i:no\s+longer|at\s+(?:a|the\s+same)\s+time|(?:each|every|first|last)\s+time)\b)",
            r"(?P<word>[A-Za-zµμ]+(?:['’][a-z]+)?)",
            rf"(?P<zh>{_CHINESE})",
            rf"(?P<c>(?<![第统唯同逐]){_NUMBER_ZH})",
            rf"(?P<value>{VALUE})",
            r"(?P<end>[.。,，;；:：!！?？、()（）|])",
            r"(?P<mark>[^\s\w-]|[\u4e00-\u9fff])",
        )
    ),
    re.ASCII,
)

_NUMERIC = re.compile(
    rf"[\d{_ZH}半倍番½¼¾⅓⅔⅕⅛]|\b(?:"
    + "|".join(word for word, letter in _LETTER.items() if letter in "1cft" and word.isascii())
    + r")\b|\ba\s+(?:milli|micro|nano)second\b",
    re.I,
)

# --- grammar: on the letters of a line -------------------------------------------------------------

_SEVERAL = r"(?:[a1]?c(?:\+?[c1])*)"
_PART = rf"(?:(?:[a1]|{_SEVERAL})?f)"
_MANY = rf"(?:[nD](?:c|\+[nD])*|(?:1|{_SEVERAL})\+af|{_PART}|{_SEVERAL})"  # any number but one
_NUMBER = rf"(?:{_MANY}|[1I])"
_TIMES = rf"(?:(?:[nD]|{_SEVERAL}|{_SEVERAL}\+af|1\+af)[xX]|1X|t)"
_MULTIPLE = rf"(?:{_TIMES}|{_PART})"
_MOMENT = "[syk]"
# A few words on, in the same clause; a Chinese word has two characters or so.
_NEAR = r"(?:_{1,2}|[^|#_]){0,5}?"
_NEXT = r"O*(?:_{1,2}|[^|#_])?O*"
_MEASUREMENT = re.compile(
    "|".join(
        (
            "M",  # 百分之九十
            rf"{_NUMBER}g?[us]",
            "as",  # under a millisecond
            rf"(?:{_MANY}|I)[gk]?y",
            rf"{_PART}O?a[usy]",  # a quarter of a millisecond
            rf"{_MANY}[._gO]{{0,4}}?[/a][._]?{_MOMENT}",  # 38 requests per second, 3.2 TB a second
            rf"{_MANY}[._gO]{{0,4}}?P",
            rf"E{_MANY}[gk]?{_MOMENT}",  # 每两个周期
            rf"{_MANY}[._gO]{{0,4}}?e{_MOMENT}(?=\||$)",
            rf"E{_MOMENT}(?!O){_NEAR}{_MANY}",  # 每秒生成 4312 个词元
            "[nD]X",
            rf"r{_NEAR}{_NUMBER}",
            rf"R{_NEAR}D|q{_NEAR}R{_NUMBER}|R{_NUMBER}{_NEAR}q",
            rf"{_TIMES}{_NEAR}[qr]",
            rf"{_PART}(?:{_NEXT}|O*w{_NEAR})[qr]",  # a third of the time: but not 'half of the warps are faster'
            rf"[qr]{_NEAR}{_MULTIPLE}",
            rf"{_MULTIPLE}O*v|vO*{_MULTIPLE}",
        )
    )
)


@cache
def _letter(word: str) -> str:
    """The letter of a word or a unit; '.' for any other."""
    plain = word.removesuffix("'s").removesuffix("’s")
    if letter := _LETTER.get(plain) or _LETTER.get(plain.lower()):
        return letter
    return next((one for one, unit in _UNIT_LETTER.items() if unit.fullmatch(word)), ".")


def _kind(token: re.Match) -> str:
    kind, text = token.lastgroup or "", token[0]
    if kind in ("word", "zh"):
        return _letter(text)
    if kind == "n":
        return "D" if "." in text else "I" if text == "1" else "n"
    if kind == "c":
        return "1" if text == "一" else "c"
    if kind in ("end", "value"):
        return "|" if kind == "end" else "#"
    if kind == "mark":
        return "/" if text == "/" else "." if text.isascii() else "_"
    return kind


def found(text: str) -> Iterator[str]:
    """The measurements in a text without markup, as they stand there."""
    if not _NUMERIC.search(text):  # most of what it costs
        return
    tokens = list(_TOKEN.finditer(text))
    for match in _MEASUREMENT.finditer("".join(map(_kind, tokens))):
        yield text[tokens[match.start()].start() : tokens[match.end() - 1].end()]


def is_number(text: str) -> bool:
    """Whether a text is a number in figures and nothing else."""
    return re.fullmatch(_FIGURES, text.strip(), re.ASCII) is not None


def is_measurement(text: str) -> bool:
    """Whether a text is one measurement and nothing else."""
    return next(found(text), None) == text.strip()
