"""A stricter count of register bank conflicts than that of loops.py: two words of one bank, not three."""

import re
from collections.abc import Iterable

from loops import Instruction


def same_bank(turn: Iterable[tuple[Instruction, int]]) -> int:
    """FMAs of a turn that fetch two registers of one bank; what `.reuse` has kept is not fetched."""
    found, kept = 0, {}
    for i, times in turn:
        if i.op != "FFMA":
            kept = {}
            continue
        places = [place.strip() for place in i.text.split(None, 1)[1].split(",")[1:4]]
        registers = [re.match(r"-?R(\d+)", place) for place in places]
        numbers = [int(register[1]) if register else None for register in registers]
        fetched = {n for p, n in enumerate(numbers) if n is not None and kept.get(p) != n}
        found += times * (len({n % 2 for n in fetched}) < len(fetched))
        kept = {p: numbers[p] for p, place in enumerate(places) if ".reuse" in place}
    return found
