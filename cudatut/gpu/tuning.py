"""The search for the fastest configuration of a part's own kernel: `python -m cudatut tune tensor 4096`.

A part that can be tuned has an `autotuning_space.py` beside its ladder.py, whose SPACE says what is searched, how a
candidate is compiled, launched and checked, and what is chosen untuned. The search itself is that of the chapter on
autotuning, gemm/tuner.py.
"""

import importlib
from collections.abc import Callable, Sequence
from typing import Any

from cudatut import paths
from cudatut.gpu.device import activate, device, require
from cudatut.gpu.ladder import RungError, load_ladder

SHOWN = 12  # of the ranking


def tune(
    ladder_name: str,
    sizes: Sequence[str] = (),
    most: int | None = None,
    say: Callable[[str], None] = print,
) -> None:
    """Tune a part's kernel for each size and say, line by line, the steps, a ranking, and what won.

    sizes: '4096' or '4096x1024x512', in the order of the space's axes; none: the size that the space names first.
    most: compile at most so many candidates, drawn at random. Raises RungError (no such ladder, or none to tune),
    CudatutError (no size, nothing left), UnsupportedGpuError, NoGpuError.
    """
    space, tuner = _space(ladder_name), importlib.import_module("cudatut.book.gemm.tuner")
    wanted = [tuner.parse_size(text, space.axes) for text in sizes] or list(space.sizes[:1])
    activate()
    require(space.requires)
    for size in wanted:
        say(f"{space.name}, {' x '.join(map(str, size.values()))}, on {device().name}")
        found = tuner.tune(space, size, most, say=say)
        for label, why in found.dropped.items():
            if why.startswith("is wrong"):
                say(f"{label} {why}; please report this")
        for line in [*ranking(found.heats), found.verdict(), *_more(space, size, found)]:
            say(line)


def ranking(heats: Sequence[Any], most: int = SHOWN) -> list[str]:
    """The best of a race, first those that came furthest: place, median in its last heat, times the best's, name."""
    order: dict[str, float] = {}
    for heat in reversed(heats):
        for name in sorted(heat.times, key=heat.median):
            order.setdefault(name, heat.median(name))
    best = next(iter(order.values()))
    return [
        f"{place:3}  {us:10.2f} us  {us / best:6.3f}  {name}"
        for place, (name, us) in enumerate(order.items(), 1)
        if place <= most
    ]


def _space(name: str) -> Any:
    files = sorted(paths.examples_dir().glob("*/ladder/autotuning_space.py"))
    parts = [file.parts[-3] for file in files]
    known = ", ".join(parts)
    try:
        ladder = load_ladder(name)
    except RungError as error:
        raise RungError(f"there is no ladder '{name}'; these can be tuned: {known}") from error
    if ladder.part not in parts:
        raise RungError(f"the ladder '{ladder.name}' has nothing to tune; these have: {known}")
    return importlib.import_module(f"cudatut.book.{ladder.part}.ladder.autotuning_space").SPACE


def _more(space: Any, size: dict[str, int], found: Any) -> list[str]:
    """What a space adds: lines for whoever keeps its tables."""
    return space.lines(size, found.choice) if hasattr(space, "lines") else []
