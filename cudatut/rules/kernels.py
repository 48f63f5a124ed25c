"""Every kernel compiles, without warnings and spills, for the GPUs that it claims; and no template is left out.

`cudatut.restamp.declared` says which kernels there are, and which comments in a source say what is meant.
"""

import re
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from pathlib import Path

from cudatut import catalog, paths
from cudatut.errors import CudatutError
from cudatut.exercises import Exercise
from cudatut.finding import Finding
from cudatut.gpu import headers, instances, nvcc
from cudatut.restamp import declared
from cudatut.restamp.declared import Source, templates_without_instance
from cudatut.rules.places import line_of_cell

_SPILT = re.compile(
    r"Compiling entry function '(\w+)' for '(\w+)'.*?(\d+) bytes spill stores", re.DOTALL
)
_WARNING = re.compile(r"\bwarning\b[ #:]")
_UNUSED = re.compile(r"declared but never referenced|set but never used")  # as a stub may leave it


class Stub(Source):
    """A kernel to begin with: the oldest architecture that it claims and one of today's are enough."""

    def architectures(self, every: bool = True) -> list[str]:
        first, *others = super().architectures()
        return [first, *(["90"] if "90" in others else [])]


def is_program(source: Source) -> bool:
    """Whether nvcc makes a whole program of it, rather than kernels alone."""
    return re.search(r"^int main\(", source.code, re.MULTILINE) is not None


def compiled_text(source: Source) -> str:
    """What nvcc is given of it: its lines keep their numbers, and its instances stand behind them."""
    lines = [source.code.rstrip("\n"), *map(instances.instantiation, source.instances)]
    text = "\n".join([f'#line 1 "{source.where}"', *lines, ""])
    return f'extern "C" {{\n{text}\n}}\n' if source.wrap else text


def flags(source: Source, headers: Sequence[str] | None, every: bool = False) -> list[str]:
    """Flags of nvcc, for all architectures in one run; headers: their texts, None where they cannot be known."""
    return [
        *("-std=c++17", "-lineinfo", "-Xptxas", "-v", "--threads", "2"),
        *([] if is_program(source) else ["--fatbin"]),
        *source.code_for([source.code, *(headers or ())], every or headers is None),
        *source.defines,
        *source.options,
    ]


def spills(log: str) -> list[str]:
    """ "kernel for 'sm_75': 8 bytes" for each kernel that spills, from ptxas's report."""
    return [
        f"{name} for {arch}: {size} bytes" for name, arch, size in _SPILT.findall(log) if int(size)
    ]


def problems(source: Source, status: int, log: str) -> list[str]:
    """What is wrong with a source that nvcc has ended with `status`, in words to be read behind its place."""
    if re.search(r"//\s*expect:\s*compile error", source.code):
        return [] if status else ["it is meant not to compile, and does: mend it, or the comment"]
    if status:
        return [f"nvcc refuses it: {_said(log)}"]
    warned = [line for line in log.splitlines() if _WARNING.search(line)]
    if isinstance(source, Stub):
        warned = [line for line in warned if not _UNUSED.search(line)]
    found = [f"nvcc warns: {line.strip()}" for line in warned]
    if not isinstance(source, Stub) and not re.search(r"//\s*expect:\s*spills", source.code):
        found += [
            f"registers spill ({said}): use fewer, or say `// expect: spills` if that is what it shows"
            for said in spills(log)
        ]
    return found


def _said(log: str) -> str:
    found = next((line for line in log.splitlines() if re.search(r"\berror\b", line)), "")
    return found.strip() or log.strip()[-300:] or "without a word"


def without_instance(source: Source) -> list[str]:
    """Templates of a file that nothing instantiates, so that they are not compiled at all."""
    return [
        f"nothing compiles the template {name}: add a line `// @instance {name}<...>`"
        for name in templates_without_instance(source.code, source.instances)
    ]


def of_stub(exercise: Exercise) -> list[Stub]:
    """The kernels that a reader begins with, behind their givens. Raises BadExerciseError, SyntaxError."""
    code = "\n\n".join((exercise.given, exercise.stub, exercise.check))
    folder = catalog.ChapterFiles(exercise.chapter).script().parent
    found = []
    for source in declared.of_python(code, f"{exercise.file}.py"):
        source = replace(source, requires=exercise.requires, folders=(folder, paths.examples_dir()))
        found.append(Stub(**{one.name: getattr(source, one.name) for one in fields(source)}))
    return found


# --- one chapter -----------------------------------------------------------------------------------


Compile = Callable[[Source, Path], tuple[int, str]]  # in a folder: nvcc's status and log


@dataclass(frozen=True)
class Nvcc:
    """Compiles for the lowest architecture that a source claims, and those of today."""

    program: Path

    @classmethod
    def found(cls) -> "Nvcc":
        """The nvcc of this machine. Raises ToolMissing without it or a host compiler."""
        nvcc.find_host_compiler()
        return cls(nvcc.find_nvcc())

    def __call__(self, source: Source, folder: Path) -> tuple[int, str]:
        (folder / "source.cu").write_text(compiled_text(source), encoding="utf-8")
        known = headers.found(source.code, source.folders)
        texts = None if known is None else [raw.decode("utf-8", "replace") for raw in known]
        command: list[str | Path] = [
            self.program,
            *flags(source, texts),
            *(f"-I{one}" for one in source.folders),
        ]
        command += nvcc.nvcc_flags(self.program) if is_program(source) else []
        done = subprocess.run(
            [*command, "-o", "out", "source.cu"],
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=600,
            env=nvcc.nvcc_env(self.program),
        )
        return done.returncode, done.stdout + done.stderr


def of_files(
    files: Sequence[Path],
    stubs: Sequence[Exercise],
    compiler: Compile,
    say: Callable[[str], None] = lambda line: None,
) -> list[Finding]:
    """Findings of the kernels in these scripts and .cu files, and of what the stubs add to them.

    say: told what is compiled, which takes seconds each.
    """
    sources = _sources(files)
    known = {source.code for source in sources}
    todo = [(source, source.file, source.line) for source in sources]
    for exercise in stubs:
        with suppress(CudatutError, SyntaxError):  # the rules of exercises say so
            begun = catalog.ChapterFiles(exercise.chapter).script(catalog.EXERCISES)
            place = paths.shown(begun), line_of_cell(begun, f"stub-{exercise.number}")
            todo += [(one, *place) for one in of_stub(exercise) if one.code not in known]
    found: list[Finding] = []
    for source, file, line in todo:
        say(f"compiling {file}:{line}" if line else f"compiling {file}")
        with tempfile.TemporaryDirectory(prefix="cudatut-compile-") as folder:
            status, log = compiler(source, Path(folder))
        said = problems(source, status, log)
        said += without_instance(source) if source.where.endswith(".cu") else []
        found += [Finding(file, line, one) for one in said]
    return found


def _sources(files: Sequence[Path]) -> list[Source]:
    """As `declared.sources` finds them, of these files alone; a .cu file claims what the chapter's example does."""
    claims = {
        example.path: example.requires
        for example in (catalog.get(catalog.shown(path)) for path in files if _is_example(path))
    }
    found: list[Source] = []
    for path in files:
        if path.suffix == ".cu":
            lead = [
                claims[script] for script in claims if path in catalog.with_includes(script)
            ] or ["sm_75"]
            found += declared.of_file(path, sorted(set(lead), key=lambda arch: (len(arch), arch)))
        elif path.suffix == ".py":
            found += declared.of_script(path, claims.get(path, "sm_75"))
    return found


def _is_example(path: Path) -> bool:
    try:
        return path.suffix == ".py" and bool(catalog.get(catalog.shown(path)))
    except CudatutError:
        return False
