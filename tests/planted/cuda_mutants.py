"""Single faults in CUDA C++, drawn by a seed: one token or one statement is another, or gone.

Families, of which each is drawn as often as the others, as far as a text has places for them:

    guard      a comparison reaches one further or less far; a guard always or never holds; an early return is gone
    constant   a literal is one more, one less, doubled
    operator   + is -, * is +, / is *, << is >>, & is |, && is ||, min is max ...
    barrier    a statement that waits, arrives or synchronizes is gone
    fence      a statement that orders memory is gone
    phase      a parity is the other one; what turns it is gone
    statement  another call or assignment is gone
"""

import random
import re
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True)
class Mutant:
    """`old` at the place `at` (in characters) of a file, relative to examples/, is `new`."""

    file: str
    at: int
    old: str
    new: str
    family: str
    line: int

    @property
    def name(self) -> str:
        """A line for people: where, and what became what."""
        old, new = (" ".join(text.split()) for text in (self.old, self.new))
        return f"{self.file}:{self.line} {self.family}: `{old}` -> `{new}`"

    def applied(self, text: str) -> str:
        """The text with the fault. Raises ValueError where it is another text."""
        if text[self.at : self.at + len(self.old)] != self.old:
            raise ValueError(f"{self.file} has changed since this fault was drawn: draw again")
        return text[: self.at] + self.new + text[self.at + len(self.old) :]

    def facts(self) -> dict:
        return asdict(self)


_HIDDEN = re.compile(
    r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])+'"
    r"|^[ \t]*#(?:[^\n]*\\\n)*[^\n]*",
    re.S | re.M,
)
# What decides about speed, names and types, but about no result.
_LEFT_OUT = re.compile(r"__launch_bounds__\s*\(|static_assert\s*\(|__align__\s*\(|alignas\s*\(")
_TYPES = r"(?:__device__|__global__|const|constexpr|static|struct|class|using|template|typename|extern|union|enum)"


def blanked(text: str) -> str:
    """The text with blanks where comments, strings, directives and what no result depends on stand."""

    def hide(part: str) -> str:
        return re.sub(r"[^\n]", " ", part)

    code = _HIDDEN.sub(lambda found: hide(found[0]), text)
    for found in list(_LEFT_OUT.finditer(code)):
        end = closing(code, found.end() - 1)
        code = code[: found.start()] + hide(code[found.start() : end]) + code[end:]
    return code  # fmt: skip


def closing(code: str, opening: int) -> int:
    """The place behind the bracket that closes the one at `opening`."""
    depth = 0
    for at in range(opening, len(code)):
        depth += (code[at] in "([{") - (code[at] in ")]}")
        if depth == 0:
            return at + 1
    return len(code)


# --- places ------------------------------------------------------------------------------------------

_COMPARISONS = {
    "<": ["<="],
    "<=": ["<"],
    ">": [">="],
    ">=": [">"],
    "==": ["!="],
    "!=": ["=="],
}
_OPERATORS = {
    "+": ["-"], "-": ["+"], "*": ["+"], "/": ["*"], "%": ["/"], "<<": [">>"], ">>": ["<<"],
    "&": ["|"], "|": ["&"], "^": ["|"], "&&": ["||"], "||": ["&&"], "+=": ["-=", "="], "-=": ["+="],
    "*=": ["="], "/=": ["*="], "|=": ["="], "^=": ["="], "<<=": [">>="], ">>=": ["<<="],
    "++": ["--"], "--": ["++"],
}  # fmt: skip
_SYMBOL = re.compile(
    r"<<=|>>=|<<|>>|<=|>=|==|!=|&&|\|\||\+=|-=|\*=|/=|\|=|\^=|->|::|\+\+|--|[-+*/%<>&|^]"
)
_NUMBER = re.compile(r"(?<![\w.])(0[xX][0-9a-fA-F]+|\d+\.\d*(?:[eE][-+]?\d+)?|\d*\.?\d+[eE][-+]?\d+|\d+)([uUlLfF]*)(?![\w.])")  # fmt: skip
_NAMES = {
    "min": "max", "max": "min", "fminf": "fmaxf", "fmaxf": "fminf", "__float2bfloat16_rn": "__float2bfloat16_rz",
    "atomicAdd": "atomicExch", "true": "false", "false": "true",
}  # fmt: skip
_BARRIER = re.compile(r"^(?:\w+::)*\w*(?:sync|wait|arrive|barrier|commit|receive|gather)\w*$", re.I)
_FENCE = re.compile(r"^(?:\w+::)*\w*(?:fence|drain|order)\w*$", re.I)
_ASM = {
    "fence": re.compile(r"\b(?:fence|membar)\b"),
    "barrier": re.compile(r"\b(?:bar|barrier|mbarrier|griddepcontrol|commit\w*|wait\w*|arrive)\b"),
}
_PHASE = re.compile(r"(?i)\b\w*(?:parity|phase)\w*")


def enclosing(code: str) -> list[str]:
    """Of each place the innermost bracket that is open there; a template's < is none."""
    found, stack = [], [""]
    for char in code:
        if char in ")]}" and len(stack) > 1:
            stack.pop()
        found.append(stack[-1])
        if char in "([{":
            stack.append(char)
    return found


def spaced(code: str, at: int, end: int) -> bool:
    """Whether an operator stands between blanks, as clang-format puts a binary one: `T*`, `x<3>` do not."""
    return code[at - 1 : at] in " \n" and code[end : end + 1] in " \n"


def tokens(code: str) -> Iterator[tuple[int, str, str, str]]:
    """(place, old, new, family) of each symbol, number and name that could be another."""
    templates = [m.span() for m in re.finditer(r"\btemplate\s*<[^;{()]*?>\s*(?=\w|\n)", code)]
    for found in _SYMBOL.finditer(code):
        at, symbol = found.start(), found[0]
        if any(a <= at < b for a, b in templates):
            continue
        single = symbol in ("++", "--")
        if not single and not spaced(code, at, found.end()):
            continue
        for new in _COMPARISONS.get(symbol, ()):
            yield at, symbol, new, "guard"
        for new in _OPERATORS.get(symbol, ()):
            yield at, symbol, new, "operator"
    for found in _NUMBER.finditer(code):
        at, number, suffix = found.start(), found[1], found[2]
        if any(a <= at < b for a, b in templates):
            continue
        if "." in number or ("e" in number.lower() and not number.lower().startswith("0x")):
            real = float(number)
            for other in sorted({2 * real, real + 1} - {real}):
                yield at, found[0], f"{other!r}{suffix}", "constant"
            continue
        value = int(number, 0)
        around = code[max(at - 24, 0) : at]
        family = "phase" if _PHASE.search(around.rpartition("\n")[2]) and value < 2 else "constant"
        for near in (value + 1, value - 1) if value else (1,):
            shown = hex(near) if number.lower().startswith("0x") else str(near)
            yield at, found[0], f"{shown}{suffix}", family
    for found in re.finditer(r"\b[A-Za-z_]\w*\b", code):
        if named := _NAMES.get(found[0]):
            yield found.start(), found[0], named, "operator"
    # A parity that is handed on.
    for found in re.finditer(r"(?<=[ (,])((?:\w+\.)*\w*(?:parity|phase)\w*)(?=\))", code):
        yield found.start(), found[0], f"{found[0]} ^ 1", "phase"
    for found in re.finditer(r"(?:parity|phase)\w*( \^ 1)\b", code):
        yield found.start(1), found[1], "", "phase"


def statements(code: str) -> Iterator[tuple[int, str, str, str]]:
    """(place, old, new, family) of each statement that could be gone, and of each condition that could be a constant."""
    inside = enclosing(code)
    for found in re.finditer(r"\bif\s*(?:constexpr\s*)?\(", code):
        end = closing(code, found.end() - 1)
        condition = code[found.end() : end - 1]
        for new in ("true", "false"):
            yield found.end(), condition, new, "guard"
        leaves = re.compile(r"\s*(?:return|continue|break)\b[^;{}]*;").match(code, end)
        if leaves:
            yield found.start(), code[found.start() : leaves.end()], ";", "guard"
    for found in re.finditer(
        r"(?<=[;{}:)\n])[ \t\n]*((?:asm\s+volatile|[A-Za-z_][\w:.\->]*))", code
    ):
        at = found.start(1)
        if inside[at] != "{":
            continue  # of a `for`'s head, an argument
        before = code[:at].rstrip()
        if not before or before[-1] not in ";{}:)" or before.endswith("::"):
            continue  # in the midst of an expression
        if before[-1] == ":" and "?" in re.split(r"[;{}]", before)[-1]:
            continue  # not behind a label
        behind = _end_of_statement(code, at)
        if behind is None:
            continue
        text, head = code[at:behind], found[1]
        if re.match(
            _TYPES
            + r"\b|(?:return|case|default|if|for|while|else|do|switch|goto|break|continue)\b",
            text,
        ):
            continue  # fmt: skip
        if before[-1] == ")" and re.search(r"\)\s*$", before) and _declares(code, before):
            continue
        if head.startswith("asm"):
            yield at, text, ";", "statement"  # what it says decides, see `possible`
        elif call := re.match(r"([\w:.\->]+?)\s*(?:<[^;()]*>)?\s*\(", text):
            name = re.split(r"\.|->", call[1])[-1]
            family = "statement"
            if _BARRIER.match(name):
                family = "barrier"
            elif _FENCE.match(name):
                family = "fence"
            yield at, text, ";", family
        elif re.match(r"[\w:.\->\[\]\s+*/%()-]+?\s(?:[-+*/|&^]|<<|>>)?=\s", text):
            if re.match(r"[A-Za-z_][\w:<>]*[\s*&]+\w+\s*=", text):
                continue  # a declaration
            left = re.split(r"[-+*/|&^]?=", text)[0]
            yield at, text, ";", "phase" if _PHASE.search(left) else "statement"


def _declares(code: str, before: str) -> bool:
    """Whether the bracket before belongs to a function's head and not to an `if`, `for` or `while`."""
    depth, at = 0, len(before) - 1
    while at >= 0:
        depth += (before[at] == ")") - (before[at] == "(")
        if depth == 0:
            break
        at -= 1
    return not re.search(r"\b(?:if|for|while|constexpr)\s*$", before[:at])


def _end_of_statement(code: str, at: int) -> int | None:
    """The place behind the semicolon; None where a block begins before it (a lambda's may lie in brackets)."""
    while at < len(code):
        if code[at] in "([":
            at = closing(code, at)
            continue
        if code[at] == ";":
            return at + 1
        if code[at] in "{}":
            return None
        at += 1
    return None


def family_of(old: str, real: str, family: str) -> str:
    """The family of a statement: of an `asm`, whose text `old` has blanks instead of strings, what the real text says."""
    if not old.startswith("asm"):
        return family
    return next((one for one, words in _ASM.items() if words.search(real)), "statement")


def possible(file: str, text: str) -> list[Mutant]:
    """All faults of a file."""
    code, found = blanked(text), []
    for at, old, new, family in (*tokens(code), *statements(code)):
        real = text[at : at + len(old)]
        family = family_of(old, real, family)
        found.append(Mutant(file, at, real, new, family, text.count("\n", 0, at) + 1))
    return found


FAMILIES = ("guard", "constant", "operator", "barrier", "fence", "phase", "statement")


def drawn(texts: dict[str, str], seed: int) -> Iterator[Mutant]:
    """Faults without end of repetition: the families take turns; each fault occurs once, no line twice in a family.

    texts: by the name of a file, relative to examples/, what it says.
    """
    draw = random.Random(seed)
    left: dict[str, list[Mutant]] = {family: [] for family in FAMILIES}
    for file in sorted(texts):
        for one in possible(file, texts[file]):
            left[one.family].append(one)
    seen = set()
    for some in left.values():
        draw.shuffle(some)
    while any(left.values()):
        for family in FAMILIES:
            while left[family]:
                one = left[family].pop()
                if (one.file, one.line, family) not in seen:
                    seen.add((one.file, one.line, family))
                    yield one
                    break


def kernel_files(root: Path) -> dict[str, str]:
    """The kernel files of llm and tensor and of what they share, without those of exercises and solutions."""
    rooms = ("llm", "tensor", "hopper", "ptx", "measure")
    found = [path for room in rooms for path in (root / room).rglob("*.cu*")]
    return {
        path.relative_to(root).as_posix(): path.read_text(encoding="utf-8")
        for path in sorted(found)
        if path.suffix in (".cu", ".cuh") and not re.search("_(exercises|solutions)$", path.stem)
    }


def counted(mutants: Iterable[Mutant]) -> dict[str, int]:
    found = dict.fromkeys(FAMILIES, 0)
    for one in mutants:
        found[one.family] += 1
    return found
