"""Whether the kernels of a recording have the same machine code at two commits."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from cudatut import tool
from cudatut.errors import CudatutError
from cudatut.gpu.nvcc import find_nvcc, nvcc_version
from cudatut.history import History
from cudatut.restamp.grounds import Change
from cudatut.restamp.includes import included
from cudatut.restamp.trees import Tree, tree


class Compiler:
    """The machine code of kernels at commits, from `cudatut.restamp.compiled`: for each commit in a process of its own.

    To read a tree takes about as long as to compile a kernel. So what will be asked for is announced by `expect`, and all
    of it is found at once.
    """

    def __init__(self, past: History):
        self._past = past
        self._expected: dict[tuple[str, ...], set[str]] = {}
        self._known: dict[tuple[str, ...], tuple[set[str], dict[str, Any]]] = {}

    def expect(self, metadata: Mapping[str, Any], change: Change, then: Tree, now: Tree) -> None:
        """Say that `differences` will be asked for."""
        for key, wanted in _asked(metadata, change, then, now).items():
            self._expected.setdefault(key, set()).update(wanted)

    def declared(self, commit: str, arch: str, files: Iterable[str]) -> dict[str, Any]:
        """What `compiled.kernels` says of the tree at a commit, of at least these files. Raises CudatutError."""
        return self._ask(("declared", commit, arch), set(files), lambda asked: asked)

    def recorded(self, commit: str, kernels: list[dict[str, Any]]) -> list[str | None]:
        """The digests that kernels of a recording have at a commit. Raises CudatutError."""
        wanted = [json.dumps(one, sort_keys=True) for one in kernels]
        known = self._ask(("recorded", commit), set(wanted), lambda asked: map(json.loads, asked))
        return [known[one] for one in wanted]

    def _ask(
        self, key: tuple[str, ...], wanted: set[str], given: Callable[[list[str]], Iterable[Any]]
    ) -> dict[str, Any]:
        asked, known = self._known.get(key, (set(), {}))
        if not wanted <= asked:
            asked = asked | wanted | self._expected.get(key, set())
            what, commit, *more = key
            known = self._run(commit, [what, *more], list(given(sorted(asked))))
            if what == "recorded":
                known = dict(zip(sorted(asked), known, strict=True))
            self._known[key] = asked, known
        return known

    def _run(self, commit: str, arguments: list[str], given: list[Any]) -> Any:
        with tree(self._past, commit).on_disk() as root:
            done = subprocess.run(
                [sys.executable, "-m", "cudatut.restamp.compiled", *arguments],
                capture_output=True,
                text=True,
                input=json.dumps(given),
                env=tool.environment() | {"CUDATUT_EXAMPLES": str(root)},
            )
        if done.returncode:
            said = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
            raise CudatutError(f"the kernels at {commit[:12]} could not be compiled: {said}")
        return json.loads(done.stdout)


def _asked(
    metadata: Mapping[str, Any], change: Change, then: Tree, now: Tree
) -> dict[tuple[str, ...], set[str]]:
    """What `differences` will ask a compiler for: by kind, commit and GPU, files or kernels (as JSON)."""
    changed = set(change.code)
    if "kernels" in metadata:
        named = (one for one in metadata["kernels"] if "file" in one)
        today = (_today(one, change) for one in named if included([one["file"]], then) & changed)
        return {("recorded", now.commit): {json.dumps(one, sort_keys=True) for one in today}}
    made_of = {one for one in metadata["sources"] if included([one], then) & changed}
    called = {change.now.get(one, one) for one in made_of} - {None}
    arch = _arch(metadata)
    return {("declared", then.commit, arch): changed, ("declared", now.commit, arch): called}


def _arch(metadata: Mapping[str, Any]) -> str:
    return f"sm_{metadata['gpu']['compute_capability'].replace('.', '')}"


def _today(kernel: dict[str, Any], change: Change) -> dict[str, Any]:
    """A kernel of a recording, its file called as it is called today."""
    return kernel | {"file": change.now.get(kernel["file"], kernel["file"])}


def differences(
    metadata: Mapping[str, Any], change: Change, then: Tree, now: Tree, compiler: Compiler
) -> list[str]:
    """Why the code of a recording's kernels is not known to be the same; empty where it is.

    metadata: of the recording, as it was before; change: of its files. A recording that names its kernels is held to
    these; for an older one all declared instances of its sources count that are or include a file whose code has to be
    the same, more than what ran. Raises CudatutError where the compiler that the recording names is not here.
    """
    wanted, here = metadata["toolchain"].get("nvcc"), nvcc_version(find_nvcc())
    if wanted != here:
        raise CudatutError(f"its kernels were compiled by nvcc {wanted}, and this is nvcc {here}")
    compare = _recorded if "kernels" in metadata else _declared
    return list(compare(metadata, change, then, now, compiler))


def _recorded(
    metadata: Mapping[str, Any], change: Change, then: Tree, now: Tree, compiler: Compiler
) -> Iterator[str]:
    changed, compared, named = set(change.code), set(), []
    for one in metadata["kernels"]:
        made_of = included([one["file"]] if "file" in one else one["includes"], then)
        if not made_of & changed:
            continue
        compared |= made_of
        if "file" in one:
            named.append(one)
        else:
            yield f"the kernel {one['name']} in a string includes {', '.join(one['includes'])}"
    today = [_today(one, change) for one in named]
    for one, sha in zip(named, compiler.recorded(now.commit, today) if today else (), strict=True):
        if sha != one["code"]:
            yield f"{one['file']}: the code of {one['name']} is another"
    for name in sorted(changed - compared):
        yield f"{name}: no recorded kernel includes it"


def _declared(
    metadata: Mapping[str, Any], change: Change, then: Tree, now: Tree, compiler: Compiler
) -> Iterator[str]:
    changed, compared, arch = set(change.code), set(), _arch(metadata)
    before = {
        name: one
        for name, one in compiler.declared(then.commit, arch, changed).items()
        if one["file"] in metadata["sources"] and changed & {one["file"], *one["includes"]}
    }
    called = {one["file"]: change.now.get(one["file"], one["file"]) for one in before.values()}
    after = compiler.declared(now.commit, arch, filter(None, called.values()))
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
