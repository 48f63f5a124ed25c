"""What was measured on each GPU and is kept: `results/<gpu>.json`, written by `python -m cudatut tune` and `results`.

One file per GPU model, named by the slug of its name. Every entry carries a birth certificate: GPU, driver, CUDA, date,
commit and command. A file is written whole or not at all, and whatever cannot be read as one is refused by name:

    {"schema": 1, "kind": "cudatut-gpu-results", "gpu": {"name", "compute_capability", "memory_bytes", "sm_count"},
     "scoreboards": {"gemm": {"certificate": {...}, "sources": {path: sha256}, "left_out": {rung: reason},
                              "contests": [{"size": {"m": 4096, ...}, "benchmark": {... schema v1 ...}}]}},
     "tuned": {"gemm": {"m=4096 n=4096 k=4096": {"certificate": {...}, "sources": {...}, "size": {...}, "choice": {...},
                        "default": {...}, "search": [{"step": "...", "left": 123}, ...], "benchmark": {...}}}}}
"""

import json
import os
import re
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from . import catalog, paths
from .errors import CudatutError, ToolMissing
from .files import write_whole
from .schema import GPU, require, short, validate

SCHEMA = 1
KIND = "cudatut-gpu-results"

_CERTIFICATE = {
    "gpu": dict,
    "driver": str,
    "toolchain": dict,
    "recorded_at": str,
    "commit": str,
    "command": str,
}
_SCOREBOARD = {"certificate": dict, "sources": dict, "left_out": dict, "contests": list}
_TUNED = {
    "certificate": dict,
    "sources": dict,
    "size": dict,
    "choice": dict,
    "default": dict,
    "search": list,
    "benchmark": dict,
}


class GpuResultsError(CudatutError):
    """A file of `results/` that is damaged, or is no such file; the message says which, why, and what to do."""


def folder() -> Path:
    """Where results are kept: $CUDATUT_RESULTS, else `results/` of the checkout, else the user's data folder."""
    override = os.environ.get("CUDATUT_RESULTS")
    if override:
        return Path(override).resolve()
    root = paths.repo_root()
    if root:
        return root / "results"
    try:
        from platformdirs import user_data_dir  # comes with PyCUDA
    except ImportError:
        raise ToolMissing(
            "cudatut runs without a checkout, and where your system keeps data is not known: "
            "`pip install platformdirs`, or say where with CUDATUT_RESULTS"
        ) from None
    return Path(user_data_dir("cudatut", "cudatut")) / "results"


def slug(name: str) -> str:
    """A GPU's name as a file name: 'NVIDIA H100 80GB HBM3' is 'nvidia-h100-80gb-hbm3'. Raises ValueError if nothing is left."""
    words = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
    if not words:
        raise ValueError(f"{name!r} is no name of a GPU")
    return words


def load(path: Path) -> dict[str, Any]:
    """The contents of one file, checked throughout. Raises GpuResultsError (file and reason), FileNotFoundError."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"), parse_constant=_no_constant)
    except (UnicodeDecodeError, ValueError) as error:
        raise _refused(path, f"it is cut short, or no JSON ({error})") from None
    problem = _problem(found, path.stem)
    if problem:
        raise _refused(path, problem)
    return found


def load_all(where: Path | None = None) -> list[dict[str, Any]]:
    """All GPUs' results, by file name; [] where there is no such folder. Raises GpuResultsError."""
    where = where or folder()
    return [load(path) for path in sorted(where.glob("*.json"))] if where.is_dir() else []


def save(
    gpu: dict[str, Any], section: str, name: str, entry: Any, where: Path | None = None
) -> Path:
    """Put an entry into this GPU's file, beside what is there, and return the file's path.

    section: 'scoreboards', where the entry of ladder `name` is replaced, or 'tuned', where entry is {size: result} and
    the results of other sizes stay. Raises GpuResultsError if the file that is there is damaged (it is left untouched),
    the entry is not whole, or the file cannot be written.
    """
    path = (where or folder()) / f"{slug(gpu['name'])}.json"
    about = {key: gpu[key] for key in GPU}
    whole = (
        load(path)
        if path.exists()
        else {"schema": SCHEMA, "kind": KIND, "gpu": about, "scoreboards": {}, "tuned": {}}
    )
    if section == "tuned":
        entry = {**whole["tuned"].get(name, {}), **entry}
    whole["gpu"] = about
    whole[section][name] = entry
    problem = _problem(whole, path.stem)
    if problem:
        raise GpuResultsError(f"{path} was not written: {problem}")
    text = json.dumps(whole, indent=1, ensure_ascii=False, allow_nan=False)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, f"{text}\n".encode())
    except OSError as error:
        raise GpuResultsError(f"{path} cannot be written: {error.strerror}") from error
    return path


def gpu_here() -> dict[str, Any]:
    """This GPU, as files and certificates name it. Raises NoGpuError."""
    from .gpu import device

    gpu = device()
    return {
        "name": gpu.name,
        "compute_capability": "{}.{}".format(*gpu.compute_capability),
        "memory_bytes": gpu.memory_bytes,
        "sm_count": gpu.sm_count,
    }


def certificate(command: str, sources: Iterable[str]) -> dict[str, Any]:
    """The birth certificate of what `command` measures here and now with these files of examples/. Raises NoGpuError."""
    from .gpu import device
    from .recorder import commit
    from .session import toolchain

    return {
        "gpu": gpu_here(),
        "driver": device().driver_version,
        "toolchain": {key: value for key, value in toolchain().items() if value},
        "recorded_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit(sources),
        "command": command,
    }


def sources(files: Iterable[str]) -> dict[str, str]:
    """The SHA-256 of example files and of what they include, by their paths relative to examples/."""
    from .recording import source_hash

    root, found = paths.examples_dir(), set()
    for file in files:
        path = paths.resolve_source(file)
        found.update(catalog.with_includes(path) if path.suffix == ".cu" else [path])
    inside = sorted(path for path in found if path.is_relative_to(root.resolve()))
    return {catalog.relative(path, root): source_hash(path) for path in inside}


def changed(entry: dict[str, Any]) -> list[str]:
    """Example files that differ from those an entry was measured with, or are gone."""
    from .recording import source_hash

    root = paths.examples_dir()
    return [
        name
        for name, digest in sorted(entry["sources"].items())
        if source_hash(root / name) != digest
    ]


def tuned(ladder: str, size: dict[str, int], gpu: str | None = None) -> dict[str, Any] | None:
    """What tuning chose for this size on a GPU (its name; default: this GPU), or None if it was never tuned for it.

    The result is the entry's "choice". Raises GpuResultsError, NoGpuError.
    """
    path = folder() / f"{slug(gpu or gpu_here()['name'])}.json"
    if not path.is_file():
        return None
    entry = load(path)["tuned"].get(ladder, {}).get(size_name(size))
    return entry and entry["choice"]


def size_name(size: dict[str, int]) -> str:
    """A size as a key: 'm=4096 n=4096 k=4096'."""
    return " ".join(f"{key}={value}" for key, value in size.items())


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no number")


def _refused(path: Path, reason: str) -> GpuResultsError:
    shown = path
    root = paths.repo_root()
    if root and path.is_relative_to(root):
        shown = path.relative_to(root)
    return GpuResultsError(
        f"{shown} is refused: {reason}. Move it away, and measure on that GPU again with "
        "`python -m cudatut results gemm` (scoreboard) or `python -m cudatut tune gemm` (tuning)"
    )


def _problem(found: Any, stem: str) -> str | None:
    """What keeps a file from being trusted, or None."""
    if not isinstance(found, dict) or found.get("kind") != KIND:
        return f'it was not written by cudatut (no "kind": "{KIND}")'
    if found.get("schema") != SCHEMA:
        return f"its schema is {found.get('schema')!r}, and this version of cudatut reads {SCHEMA}"
    try:
        require(found, {"gpu": dict, "scoreboards": dict, "tuned": dict}, "the file")
        require(found["gpu"], GPU, "gpu")
        if slug(found["gpu"]["name"]) != stem:
            return f"it is of the GPU '{found['gpu']['name']}', whose file is {slug(found['gpu']['name'])}.json"
        for name, board in found["scoreboards"].items():
            _check_scoreboard(board, f"scoreboards, {name}", found["gpu"]["name"])
        for name, sizes in found["tuned"].items():
            _require_each(sizes, dict, f"tuned, {name}")
            for size, entry in sizes.items():
                _check_tuned(entry, f"tuned, {name}, {size}", size, found["gpu"]["name"])
    except ValueError as error:
        return str(error)
    return None


def _check_scoreboard(board: Any, where: str, gpu: str) -> None:
    require(board, _SCOREBOARD, where)
    _check_certificate(board["certificate"], f"{where}, certificate", gpu)
    _check_words(board["sources"], f"{where}, sources")
    _check_words(board["left_out"], f"{where}, left_out")
    if not board["contests"]:
        raise ValueError(f"{where}: no contests")
    for index, contest in enumerate(board["contests"]):
        require(contest, {"size": dict, "benchmark": dict}, f"{where}, contest {index}")
        _check_size(contest["size"], f"{where}, contest {index}")
        _check_benchmark(contest["benchmark"], f"{where}, contest {index}")


def _check_tuned(entry: Any, where: str, size: str, gpu: str) -> None:
    require(entry, _TUNED, where)
    _check_certificate(entry["certificate"], f"{where}, certificate", gpu)
    _check_words(entry["sources"], f"{where}, sources")
    _check_size(entry["size"], where)
    if size_name(entry["size"]) != size:
        raise ValueError(f"{where}: its size is {size_name(entry['size'])}")
    for step in entry["search"]:
        require(step, {"step": str, "left": int}, f"{where}, search")
    for which in ("choice", "default"):
        values = entry[which]
        if not values or not all(isinstance(value, (int, str)) for value in values.values()):
            raise ValueError(f"{where}: {which} is {short(values)}")
    _check_benchmark(entry["benchmark"], where)


def _check_certificate(found: dict[str, Any], where: str, gpu: str) -> None:
    require(found, _CERTIFICATE, where)
    require(found["gpu"], GPU, where)
    _check_words(found["toolchain"], f"{where}, toolchain")
    if found["gpu"]["name"] != gpu:
        raise ValueError(f"{where}: it is of the GPU '{found['gpu']['name']}', not of '{gpu}'")
    try:
        moment = datetime.fromisoformat(found["recorded_at"])
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        raise ValueError(
            f"{where}: recorded_at {short(found['recorded_at'])} is no time with its zone"
        )


def _check_words(found: Any, where: str) -> None:
    _require_each(found, str, where)


def _check_size(size: dict[str, Any], where: str) -> None:
    if not size:
        raise ValueError(f"{where}: size is empty")
    _require_each(size, (int, str), f"{where}, size")


def _check_benchmark(found: dict[str, Any], where: str) -> None:
    try:
        validate(found)
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from None
    if found["kind"] != "benchmark" or not found["rows"]:
        raise ValueError(f"{where}: it has no benchmark with rows")
    names = [row["name"] for row in found["rows"]]
    for row in found["rows"]:
        for field in ("median_us", "p20_us", "p80_us", "value", "of_peak", "ratio_to_vendor"):
            if row[field] is not None and row[field] <= 0:
                raise ValueError(f"{where}, row '{row['name']}': {field} is {row[field]}")
    if len(set(names)) < len(names):
        raise ValueError(f"{where}: the benchmark has two rows of one name")


def _require_each(found: Any, types: Any, where: str) -> None:
    """An object all of whose values are of these types."""
    require(found, dict.fromkeys(found, types) if isinstance(found, dict) else {}, where)
