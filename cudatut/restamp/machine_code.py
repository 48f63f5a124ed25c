"""Whether the kernels of a recording have the same machine code at two commits."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from cudatut.errors import CudatutError
from cudatut.gpu.nvcc import find_nvcc, nvcc_version
from cudatut.restamp.trees import Compiler


def differences(
    metadata: Mapping[str, Any],
    changed: Sequence[str],
    now: Mapping[str, str | None],
    compiler: Compiler,
    then_commit: str,
    now_commit: str,
) -> list[str]:
    """Why the code of a recording's kernels is not known to be the same; empty where it is.

    metadata: of the recording, as it was before. changed: the files whose change has to be without effect, as they were
    called; now: what files that changed are called now. A recording that names its kernels is held to these; for an older
    one all declared instances of its sources count that are or include a changed file, more than what ran.
    Raises CudatutError where the compiler that the recording names is not here.
    """
    wanted, here = metadata["toolchain"].get("nvcc"), nvcc_version(find_nvcc())
    if wanted != here:
        raise CudatutError(f"its kernels were compiled by nvcc {wanted}, and this is nvcc {here}")
    if "kernels" in metadata:
        return list(_recorded(metadata["kernels"], changed, now, compiler, now_commit))
    return list(_declared(metadata, set(changed), now, compiler, then_commit, now_commit))


def _recorded(
    kernels: list[dict[str, Any]],
    changed: Sequence[str],
    now: Mapping[str, str | None],
    compiler: Compiler,
    commit: str,
) -> Iterator[str]:
    named = [one for one in kernels if "file" in one]
    for one in kernels:
        if "file" not in one and set(changed) & set(one["includes"]):
            yield f"the kernel {one['name']} in a string includes {', '.join(one['includes'])}"
    today = [one | {"file": now.get(one["file"], one["file"])} for one in named]
    for one, sha in zip(named, compiler.recorded(commit, today), strict=True):
        if sha != one["code"]:
            yield f"{one['file']}: the code of {one['name']} is another"


def _declared(
    metadata: Mapping[str, Any],
    changed: set[str],
    now: Mapping[str, str | None],
    compiler: Compiler,
    then_commit: str,
    now_commit: str,
) -> Iterator[str]:
    arch = f"sm_{metadata['gpu']['compute_capability'].replace('.', '')}"
    before = {
        name: one
        for name, one in compiler.declared(then_commit, arch, changed).items()
        if one["file"] in metadata["sources"] and changed & {one["file"], *one["includes"]}
    }
    called = {one["file"]: now.get(one["file"], one["file"]) for one in before.values()}
    after = compiler.declared(now_commit, arch, filter(None, called.values()))
    compared = set()
    for name, one in before.items():
        file = one["file"]
        compared |= {file, *one["includes"]}
        if one["uncovered"]:
            yield f"{file}: {one['uncovered']}, so which kernels ran is not known"
            continue
        found = after.get(name.replace(file, str(called[file]), 1), {}).get("code", {})
        if not one["code"]:
            yield f"{file} does not compile for {arch}"
        other = [symbol for symbol, sha in one["code"].items() if found.get(symbol) != sha]
        if other:
            yield f"{file}: the code of {len(other)} kernels is another, such as {other[0]}"
    for name in sorted(changed - compared):
        yield f"{name}: no declared kernel includes it"
