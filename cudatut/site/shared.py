"""What is the same in both languages is made once, by whichever of their two builds comes to it first.

The two run side by side, with a folder that begins and ends with them. They go through the same inputs from opposite ends
and meet somewhere, so none waits for the other. A build that runs alone has no such folder and makes everything itself.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from cudatut.files import write_whole
from cudatut.site import locale

FOLDER = "CUDATUT_SITE_SHARED"  # the variable that names the folder


def each(inputs: Iterable[str], make: Callable[[str], Any]) -> dict[str, Any]:
    """What `make` gives for each input, values of JSON, in no particular order."""
    folder = os.environ.get(FOLDER)
    if not folder:
        return {one: make(one) for one in inputs}
    backwards = locale.current() == locale.LANGUAGES[-1]
    return {one: _made(Path(folder), one, make) for one in sorted(inputs, reverse=backwards)}


def _made(folder: Path, one: str, make: Callable[[str], Any]) -> Any:
    # The input itself is the key, so what lies here cannot be of another.
    file = folder / f"{hashlib.sha256(one.encode()).hexdigest()}.json"
    try:
        return json.loads(file.read_bytes())
    except FileNotFoundError:
        made = make(one)
        write_whole(file, json.dumps(made).encode())
        return made
