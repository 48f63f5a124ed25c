"""Outputs of a run without traces of how they were transported or of the machine, so that recordings diff well."""

import copy
import os
import re
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cudatut import paths


def clean(notebook: Any) -> None:
    """Leave in the outputs nothing of how they were transported or of where on this machine they were made."""
    scrub = scrubber()
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    for count, cell in enumerate(code, 1):
        cell.execution_count = count
        outputs = [_deep(scrub, output) for output in merged(cell.outputs)]
        for output in outputs:
            if output.output_type == "execute_result":
                output.execution_count = count
                if "text/plain" in output.data:
                    plain = re.sub(r" at 0x[0-9a-f]+>", ">", output.data["text/plain"])
                    output.data["text/plain"] = plain
        cell.outputs = [one for one in outputs if one.output_type != "stream" or one.text]


def merged(outputs: list[Any]) -> list[Any]:
    """Streams that follow each other become one per name: how a print was cut into messages is chance."""
    merged: list[Any] = []
    run: dict[str, Any] = {}
    for output in outputs:
        if output.output_type != "stream":
            run = {}
            merged.append(output)
        elif output.name in run:
            run[output.name].text += output.text
        else:
            run[output.name] = copy.copy(output)
            merged.append(run[output.name])
    for output in merged:
        if output.output_type == "stream":
            output.text = without_overwritten(output.text)
    return merged


def without_overwritten(text: str) -> str:
    """What a terminal would still show: of a line that a progress bar rewrote with carriage returns, its last state."""
    lines = text.replace("\r\n", "\n").split("\n")
    return "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in lines)


def scrubber() -> Callable[[str], str]:
    """A function that takes this machine's folders out of a text; the longest match wins."""
    temporary, root = tempfile.gettempdir(), paths.repo_root()
    folders = {temporary: "$TMPDIR", str(Path.home()): "~"}
    # A file of an installed package is named by its place inside the package, one of the checkout by its place there.
    folders |= {str(Path(entry)): "." for entry in sys.path if os.path.isabs(entry)}
    if root:
        folders[str(root)] = "."
    folders[str(paths.examples_dir())] = "examples"
    rules = [
        # IPython names a cell's code by a file that never was.
        (re.compile(re.escape(temporary) + r"/ipykernel_\d+/\d+\.py"), "cell"),
        # Folders made for one run have random names.
        (re.compile(re.escape(temporary) + r"/(?:tmp|cudatut-|pycuda-)\w+(?=/)"), "$TMPDIR"),
    ]
    for folder in sorted(folders, key=len, reverse=True):
        if len(folder) > 1:
            begin, new = r"(?<![\w.~$-])" + re.escape(folder), folders[folder]
            if new == ".":
                rules.append((re.compile(begin + "/"), ""))
            rules.append((re.compile(begin + r"(?![\w.-])"), new))

    def scrub(text: str) -> str:
        for pattern, new in rules:
            text = pattern.sub(new, text)
        return text

    return scrub


def _deep(scrub: Callable[[str], str], value: Any) -> Any:
    if isinstance(value, str):
        return scrub(value)
    if isinstance(value, dict):
        return type(value)({key: _deep(scrub, entry) for key, entry in value.items()})
    if isinstance(value, list):
        return [_deep(scrub, entry) for entry in value]
    return value
