"""What runs where: the compute capability that an example requires, in cards that readers know, and Colab's among them.

Names and capabilities are those of NVIDIA's list (https://developer.nvidia.com/cuda-gpus). What Colab lends is what its
own command line takes (googlecolab/google-colab-cli, `Accelerator`); a notebook asks for one of them by that name, as
`colab: gpuType` of its metadata. Colab may give another one: the first cell of each notebook looks at what it got.
"""

import re

from cudatut.gpu.device import supports

Capability = tuple[int, int]

DATA_CENTER: dict[str, Capability] = {
    "T4": (7, 5),
    "A100": (8, 0),
    "H100": (9, 0),
    "H200": (9, 0),
    "B200": (10, 0),
}
GEFORCE: dict[str, Capability] = {
    "RTX 20": (7, 5),
    "RTX 30": (8, 6),
    "RTX 40": (8, 9),
    "RTX 50": (12, 0),
}
# From the cheapest; the first costs nothing, the others are paid in compute units.
COLAB: dict[str, Capability] = {"T4": (7, 5), "L4": (8, 9), "A100": (8, 0), "H100": (9, 0)}
FREE = "T4"

_REQUIRES = re.compile(r"sm_(\d+)(\d)([af]?)")


def capability(requires: str) -> tuple[str, bool]:
    """The compute capability in 'sm_90a' as readers write it, '9.0', and whether no other will do.

    Raises ValueError for anything else.
    """
    if (found := _REQUIRES.fullmatch(requires)) is None:
        raise ValueError(f"{requires!r} is no compute capability such as sm_90a")
    return f"{found[1]}.{found[2]}", bool(found[3])


def cards(requires: str) -> list[str]:
    """Cards by which readers know it: of an exact capability all that have it; else the oldest of each kind, and Colab's.

    Newer ones than these run it too, unless the capability is exact. Raises ValueError as `capability` does.
    """
    if capability(requires)[1]:
        return _able(DATA_CENTER | GEFORCE, requires)
    oldest = [_able(kind, requires)[:1] for kind in (DATA_CENTER, COLAB, GEFORCE)]
    return list(dict.fromkeys(name for names in oldest for name in names))


def colab(requires: str) -> str | None:
    """The cheapest GPU that Colab lends for it, by the name that a notebook's metadata take; None where it lends none."""
    return next(iter(_able(COLAB, requires)), None)


def notebook_metadata(requires: str) -> dict:
    """What a notebook's metadata (nbformat 4) say of where it runs: by Python 3, and in Colab on a GPU that is able to."""
    gpu = colab(requires)
    return {
        "kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"},
        "language_info": {"name": "python"},
        "accelerator": "GPU",
        "colab": {"gpuType": gpu} if gpu else {},
    }


def _able(kind: dict[str, Capability], requires: str) -> list[str]:
    return [name for name, has in kind.items() if supports(has, requires)]
