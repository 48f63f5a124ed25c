"""PTX in C++: each `asm` statement becomes calls of functions that have the names of its instructions.

    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(address), "r"(count) : "memory");

becomes `{ ptx::mbarrier_init_shared_cta_b64((address), (count)); }`. Registers of PTX become variables, labels labels, and
what a predicate guards an `if`. The shape of a product becomes template arguments. A statement without an instruction, which
tells the compiler something, becomes `{ }`. Macros are to be expanded before.
"""

import ast
import re
from collections.abc import Collection, Iterator
from itertools import count
from typing import NamedTuple

_ASM = re.compile(r"\basm\b(?:\s+volatile)?\s*\(")
# Strings, whole operands in parentheses, and what separates them.
_PARTS = re.compile(r'"(?:[^"\\]|\\.)*"|[():,]|[^"():,]+')
_REGISTERS = {"pred": "bool", "b32": "unsigned", "b64": "unsigned long long", "f32": "float"}
_SHAPE = re.compile(r"m(\d+)n(\d+)k(\d+)\.")
_STATEMENT = re.compile(r"\s*(?:(?P<label>[\w$]+):(?!:)|(?P<brace>[{}])|(?P<instruction>[^;]+);?)")


class Asm(NamedTuple):
    """text: the instructions, in which %0 is the first operand. operands: C++. outputs: how many of them come first."""

    text: str
    operands: list[str]
    outputs: int


def parsed(inside: str) -> Asm:
    """What stands between the parentheses of an `asm` statement."""
    text, operands, outputs, section, depth, operand = "", [], 0, 0, 0, ""
    for part in _PARTS.findall(inside):
        if depth:  # within an operand
            depth += (part == "(") - (part == ")")
            operand += part if depth else ""
            if not depth:
                operands.append(operand)
                outputs += section == 1
        elif part == "(":
            depth, operand = 1, ""
        elif part == ":":
            section += 1
        elif part.startswith('"') and section == 0:
            text += ast.literal_eval(part)
        elif not part.startswith('"') and part.strip(", \n"):
            raise ValueError(f"what is {part!r} in asm({inside})?")
    return Asm(text, operands, outputs)


def _split(text: str) -> Iterator[str]:
    """At the commas that stand in no brackets."""
    depth, part = 0, ""
    for letter in text:
        depth += (letter in "[{(") - (letter in "]})")
        if letter == "," and not depth:
            yield part.strip()
            part = ""
        else:
            part += letter
    if part.strip():
        yield part.strip()


class _Translated:
    """One statement. known: the instructions that have a function. number: makes its labels its own."""

    def __init__(self, asm: Asm, known: Collection[str], number: int) -> None:
        self.asm, self.known, self.number = asm, known, number

    def operand(self, text: str) -> list[str]:
        """As arguments in C++: an address of several parts is several."""
        if text == "_":
            return []
        if text.startswith("["):
            return [one for part in _split(text[1:-1]) for one in self.operand(part)]
        if text.startswith("{"):
            parts = list(_split(text[1:-1]))
            written = re.fullmatch(r"%(\d+)", parts[0])
            kind = "outs" if written and int(written[1]) < self.asm.outputs else "ins"
            return [
                f"ptx::{kind}({', '.join(one for part in parts for one in self.operand(part))})"
            ]
        if found := re.fullmatch(r"%(\d+)", text):
            return [f"({self.asm.operands[int(found[1])]})"]
        if text.startswith("%%"):
            return [f"ptx::{text[2:]}()"]
        if re.fullmatch(r"-?\d+", text):
            return [text]
        return [f"ptx_{text}"]

    def instruction(self, text: str) -> str:
        text, guard = text.strip(), ""
        if found := re.match(r"@(!?)(\w+)\s+", text):
            text, guard = text[found.end() :], f"if ({found[1]}ptx_{found[2]}) "
        word, *behind = text.split(None, 1)
        rest = "".join(behind)
        if word == ".reg":
            kind, name = rest.split()
            return f"{_REGISTERS[kind[1:]]} ptx_{name} = {{}};"
        if word == "bra":
            return f"{guard}goto {rest.strip()}_{self.number};"
        shape = _SHAPE.search(word)
        name = re.sub(r"\W+", "_", _SHAPE.sub("", word))
        if name not in self.known:
            return f'{guard}machine::fail("nothing stands for {word}");'
        sizes = f"<{', '.join(shape.groups())}>" if shape else ""
        arguments = ", ".join(one for part in _split(rest) for one in self.operand(part))
        return f"{guard}ptx::{name}{sizes}({arguments});"

    def __str__(self) -> str:
        lines = []
        for found in _STATEMENT.finditer(self.asm.text.replace("_%=", "")):
            if found["label"]:
                lines.append(f"{found['label']}_{self.number}:;")
            elif found["instruction"] and found["instruction"].strip():
                lines.append(self.instruction(found["instruction"]))
        return " ".join(["{", *lines, "}"])


def translated(text: str, known: Collection[str]) -> str:
    """C++ whose macros are expanded. known: the names of the functions that stand for instructions."""
    out, end, numbers = [], 0, count()
    while found := _ASM.search(text, end):
        out.append(text[end : found.start()])
        depth, at = 1, found.end()
        for part in _PARTS.finditer(text, found.end()):
            depth += (part[0] == "(") - (part[0] == ")")
            at = part.end()
            if not depth:
                break
        inside = text[found.end() : at - 1]
        behind = re.match(r"\s*;", text[at:])
        if depth or not behind:
            raise ValueError(f"asm({inside} has no end")
        out.append(str(_Translated(parsed(inside), known, next(numbers))))
        end = at + behind.end()
    return "".join([*out, text[end:]])
