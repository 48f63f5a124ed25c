"""The machine code of declared kernels: of those that lie in a tree of examples, and of those that a recording names.

    python -m cudatut.restamp.compiled declared sm_90 FILE ...
    python -m cudatut.restamp.compiled recorded < kernels.json

print JSON: the digests of all declared kernels whose sources are or include one of these files; or those of the kernels
that a recording names. Both in the tree that $CUDATUT_EXAMPLES names: that of an older commit is looked at by a process
of its own.
"""

import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

from cudatut import catalog, paths
from cudatut.errors import CudatutError
from cudatut.files import write_whole
from cudatut.fingerprint import code
from cudatut.gpu import headers, instances
from cudatut.gpu.nvcc import find_nvcc, nvcc_env, nvcc_version
from cudatut.restamp import declared
from cudatut.restamp.declared import Source

# A macro that a source defines unless the compiler's flags do.
_MACRO = re.compile(r"^[ \t]*#[ \t]*ifndef[ \t]+(\w+)[ \t]*\n[ \t]*#[ \t]*define[ \t]+\1\b", re.M)


def kernels(arch: str, files: Iterable[str]) -> dict[str, dict[str, Any]]:
    """The declared sources that are or include one of these files (relative to the examples), by a name for each.

    {name: {"file", "includes", "uncovered": why no declared instance stands for what a run compiles, or "", "code": {symbol:
    digest}}}. arch: of the GPU, such as sm_90; what does not compile for it is compiled for its own sm_90a, and what
    compiles for neither has no code. Raises ToolMissing without nvcc.
    """
    wanted, found, count = set(files), {}, {}
    for source in declared.sources():
        file = source.where.partition("/")[2].partition(":")[0]
        asked = " ".join([file, *source.defines, *source.options])
        count[asked] = count.get(asked, -1) + 1
        included = _includes(source)
        if not wanted & {file, *included} or "expect: compile error" in source.code:
            continue
        name = f"{asked} #{count[asked]}"
        found[name] = {
            "file": file,
            "includes": sorted(set(included)),
            "uncovered": uncovered(source, file),
            "source": source,
        }
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        runs = {name: pool.submit(_digests, one.pop("source"), arch) for name, one in found.items()}
        for name, run in runs.items():
            found[name]["code"] = run.result()
    return found


def digest_of(recorded: dict[str, Any]) -> str | None:
    """The digest of the code that a kernel of a recording (an entry of its `kernels`) has today; None where it has none.

    None, too, for a kernel in a string, of which a recording has the hash alone. Raises ToolMissing without nvcc.
    """
    if "file" not in recorded or not (paths.examples_dir() / recorded["file"]).is_file():
        return None
    path = paths.examples_dir() / recorded["file"]
    text, root = path.read_text(encoding="utf-8"), str(paths.examples_dir())
    flags = [option.replace("examples", root) for option in recorded["options"]]
    flags += [f"-D{macro}" for macro in recorded["defines"]]
    made = _compile(
        instances.assemble(text, recorded["name"]),
        instances.wrapped(text, recorded["name"]),
        recorded["arch"],
        tuple(flags),
        (path.parent, paths.examples_dir()),
    )
    base = recorded["name"].partition("<")[0].rpartition("::")[2]
    fits = [
        sha for symbol, sha in made.items() if symbol == base or f"{len(base)}{base}I" in symbol
    ]
    return fits[0] if len(fits) == 1 else None


def uncovered(source: Source, file: str) -> str:
    """Why no declared instance stands for what a run compiles of a source; "" where each does."""
    if source.computed:
        return "its text is made by the run"
    if missing := declared.templates_without_instance(source.code, source.instances):
        return f"no instance of {', '.join(missing)} is declared"
    root = paths.examples_dir()
    calls = declared.calls_with(root).get(file, ())
    macros = set(_MACRO.findall(source.code))
    asked = [declared.keyword(call, "defines") for call in calls]
    if macros and (
        any(one is not None and not declared.constant(one) for one in asked)
        or "// @rung" in source.code
    ):
        return f"the run gives values to {', '.join(sorted(macros))}"
    return ""


def _includes(source: Source) -> list[str]:
    """The files of the examples that a source includes, directly or not, relative to them."""
    root, found = paths.examples_dir(), []
    for name in headers.quoted(source.code):
        places = (folder / name for folder in source.folders)
        path = next((place for place in places if place.is_file()), None)
        if path is not None:
            found += [catalog.relative(one, root) for one in catalog.with_includes(path.resolve())]
    return found


def _digests(source: Source, arch: str) -> dict[str, str]:
    lines = [source.code.rstrip("\n"), *map(instances.instantiation, source.instances)]
    text, flags = "\n".join(lines) + "\n", (*source.options, *source.defines)
    for target in (arch, f"{arch}a"):
        if made := _compile(text, source.wrap, target, flags, source.folders):
            return made
    return {}


def _compile(
    text: str, wrap: bool, arch: str, flags: tuple[str, ...], folders: tuple[Path, ...]
) -> dict[str, str]:
    """The digest of each kernel of a source, as `ct.Kernel` compiles it; {} where it does not compile for this GPU.

    What was compiled once is found in the user's cache, by the hash of all that it depends on.
    """
    from platformdirs import user_cache_dir

    nvcc = find_nvcc()
    included = headers.found(text, folders)
    if included is None:
        raise CudatutError(f"a header between quotation marks is not there: {text[:200]}")
    parts = [2, _version(nvcc), text, wrap, arch, *flags, *map(headers.sha256, included)]
    key = hashlib.sha256(json.dumps(parts).encode()).hexdigest()
    kept = Path(user_cache_dir("cudatut", "cudatut")) / "code" / f"{key}.json"
    if kept.is_file():
        return json.loads(kept.read_text(encoding="utf-8"))
    whole = f'extern "C" {{\n{text}\n}}\n' if wrap else text
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "kernel.cu").write_text(whole, encoding="utf-8")
        command = [str(nvcc), "--cubin", "-lineinfo", "-arch", arch, *flags]
        command += [*(f"-I{one}" for one in folders), "-o", "kernel.cubin", "kernel.cu"]
        done = subprocess.run(command, cwd=folder, capture_output=True, env=nvcc_env(nvcc))
        made = {} if done.returncode else code.digests(Path(folder, "kernel.cubin").read_bytes())
    kept.parent.mkdir(parents=True, exist_ok=True)
    write_whole(kept, json.dumps(made).encode())
    return made


@cache
def _version(nvcc: Path) -> str:
    return nvcc_version(nvcc)


def main(arguments: list[str]) -> None:
    """Print what is asked for."""
    match arguments:
        case ["declared", arch, *files]:
            print(json.dumps(kernels(arch, files)))
        case ["recorded"]:
            with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
                print(json.dumps(list(pool.map(digest_of, json.load(sys.stdin)))))
        case _:
            raise SystemExit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
