"""Digests of what recordings say was measured: what gpu.yml attests, and what `gh attestation verify` compares.

A recording's file changes when it is restamped: the text of its sources, their hashes, a title. What was measured does
not. So the bytes of that alone have a digest of their own, which an attestation can hold on to.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from cudatut import paths
from cudatut.recording import Recording
from cudatut.results import MIME

# What a run tells of itself. All else in the metadata is about the code, and may be written anew without a GPU.
_OF_THE_RUN = (
    *("gpu", "toolchain", "recorded_at", "commit", "duration_s", "sanitizers", "slim"),
    *("kernels", "instrument", "rivals", "launched"),
)


def measured(recording: Recording) -> bytes:
    """What a recording says was measured, and where and when, as JSON: the same for every file with the same run.

    The outputs by their cells' titles, a result as its data alone; nothing of the code, the example's name or its title.
    """
    run = {key: recording.metadata[key] for key in _OF_THE_RUN if key in recording.metadata}
    outputs = {
        cell.title: list(map(_output, cell.outputs)) for cell in recording.cells if cell.outputs
    }
    canonical = json.dumps([run, outputs], sort_keys=True, separators=(",", ":"))
    return canonical.encode()


def _output(output: dict[str, Any]) -> dict[str, Any]:
    """An output, of a result without the text and the HTML that are made of its data."""
    data = output.get("data", {})
    return output | {"data": {MIME: data[MIME]}} if MIME in data else output


def lines(recordings: Iterable[Recording]) -> Iterator[str]:
    """Two lines of checksums for each recording: of what was measured, and of its file as it lies there.

    In the form of `sha256sum`: the digest, two blanks, and the recording's name or its file's path in the repository.
    """
    for one in recordings:
        place = _place(one)
        # Another GPU's has its folder in its name: nvidia-h200/start/errors.
        name = one.name if not one.slim else place.removeprefix("results/").removesuffix(".json")
        yield f"{hashlib.sha256(measured(one)).hexdigest()}  {name}"
        yield f"{_sha256(one.path)}  {place}"


def _place(recording: Recording) -> str:
    """Where the file of a recording lies in the repository."""
    folder = (
        ("results", paths.results_dir()) if recording.slim else ("examples", paths.examples_dir())
    )
    return f"{folder[0]}/{recording.path.relative_to(folder[1]).as_posix()}"


def _sha256(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
