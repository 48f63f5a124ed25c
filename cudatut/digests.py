"""Digests of what recordings say was measured: what gpu.yml attests, and what `gh attestation verify` compares.

A recording's file changes when it is restamped: the text of its sources, their hashes, a title. What was measured does
not. So the bytes of that alone have a digest of their own, which an attestation can hold on to.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator

from cudatut.recording import Recording


def lines(recordings: Iterable[Recording]) -> Iterator[str]:
    """Two lines of checksums for each recording: of what was measured, and of its file as it lies there.

    In the form of `sha256sum`: the digest, two blanks, and the recording's name or its file's path in the repository.
    """
    for one in recordings:
        # Another GPU's has its folder in its name: nvidia-h200/start/errors.
        inside = one.file.partition("/")[2]
        name = one.name if not one.slim else inside.removesuffix(".json")
        yield f"{one.measurement()}  {name}"
        yield f"{hashlib.sha256(one.path.read_bytes()).hexdigest()}  {one.file}"
