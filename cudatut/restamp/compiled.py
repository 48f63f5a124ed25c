"""The machine code of declared kernels: of those that lie in a tree of examples, and of those that a recording names.

    python -m cudatut.restamp.compiled declared sm_90 < files.json
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
from collections.abc import Collection, Iterable
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
from cudatut.recording import Recording
from cudatut.restamp import declared
from cudatut.restamp.declared import Source

# A part of a source that is compiled or not, as macros say.
_CONDITION = re.compile(r"^[ \t]*(#[ \t]*(?:if|ifdef|ifndef|elif)\b[^\n]*)", re.M)


# What changes what nvcc makes of the same words.
_ENVIRONMENT = ("NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS", "NVCC_CCBIN")


def kernels(arch: str, files: Collection[str]) -> dict[str, dict[str, Any]]:
    """The declared sources that are or include one of these files (relative to the examples), by a name for each.

    {name: {"file", "includes", "uncovered": why no declared instance stands for what a run compiles, or "", "code": {symbol:
    digest}}}. arch: of the GPU, such as sm_90; what does not compile for it is compiled for its own sm_90a, and what
    compiles for neither has no code. Raises ToolMissing without nvcc.
    """
    found, count = dict[str, dict[str, Any]](), dict[str, int]()
    sources = [one for one in declared.including(files) if "expect: compile error" not in one.code]
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        runs = [pool.submit(_digests, source, arch) for source in sources]
        for source, run in zip(sources, runs):
            file = source.file.partition("/")[2]
            asked = " ".join([file, *source.defines, *source.options])
            count[asked] = count.get(asked, -1) + 1
            found[f"{asked} #{count[asked]}"] = {
                "file": file,
                "includes": _includes(source),
                "uncovered": uncovered(source),
                "code": run.result(),
            }
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


def uncovered(source: Source) -> str:
    """Why no declared instance stands for what a run compiles of a source; "" where each does."""
    if source.computed:
        return "its text is made by the run"
    if missing := declared.templates_without_instance(source.code, source.instances):
        return f"no instance of {', '.join(missing)} is declared"
    if (asked := _conditions(source.code, source.folders)) and declared.macros_are_hidden(source):
        return f"the run may set what `{asked[0]}` asks for"
    return ""


def uncovered_sources(recordings: Iterable[Recording]) -> list[str]:
    """The sources of recordings that do not name their kernels, of which no declared instance stands for what ran.

    Each with the reason, sorted: "basics/ladder/tiled.cu: the run may set ...". What these compile to is not known, so a change
    is without effect only if it means the same. A kernel in a string counts where it includes a file, which may change.
    """
    older = (one.metadata["sources"] for one in recordings if "kernels" not in one.metadata)
    root, found = paths.examples_dir(), []
    for name in sorted({name for sources in older for name in sources}):
        path = root / name
        code = path.read_text(encoding="utf-8") if path.is_file() else ""
        # Cheap first: to read all scripts would take seconds.
        if name.endswith(".py") and headers.quoted(code):
            sources = declared.of_script(path)
        elif name.endswith(".cu") and (
            _conditions(code, (path.parent, root))
            or declared.templates_without_instance(code, tuple(instances.declared(code)))
        ):
            sources = declared.of_file(path)
        else:
            continue
        found += [f"{name}: {why}" for why in sorted(set(map(uncovered, sources)) - {""})]
    return found


def _conditions(code: str, folders: tuple[Path, ...]) -> list[str]:
    """What a source, or a header that it includes, asks of macros that the compiler's flags may set."""
    included = headers.found(code, folders) or []
    texts = [code, *(text.decode("utf-8", "replace") for text in included)]
    asked = (one for text in texts for one in _CONDITION.findall(text))
    return [one.strip() for one in asked if "__CUDA_ARCH" not in one]


def _includes(source: Source) -> list[str]:
    """The files of the examples that a source includes, directly or not, relative to them, sorted."""
    root, found = paths.examples_dir(), set()
    for name in headers.quoted(source.code):
        places = (folder / name for folder in source.folders)
        path = next((place for place in places if place.is_file()), None)
        if path is not None:
            found |= {catalog.relative(one, root) for one in catalog.with_includes(path.resolve())}
    return sorted(found)


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
    root = str(paths.examples_dir())  # which may be a temporary folder
    given = [
        *(flag.replace(root, "examples") for flag in flags),
        *map(os.environ.get, _ENVIRONMENT),
    ]
    parts = [3, _version(nvcc), text, wrap, arch, given, *map(headers.sha256, included)]
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
        case ["declared", arch]:
            print(json.dumps(kernels(arch, json.load(sys.stdin))))
        case ["recorded"]:
            with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
                print(json.dumps(list(pool.map(digest_of, json.load(sys.stdin)))))
        case _:
            raise SystemExit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
