"""Make recordings: run examples as notebooks on this GPU, then under the four sanitizers, and keep what is whole and good.

First, side by side: every example under each of the four sanitizers, some of them to a process, and the notebooks that
measure no time (`alone: false` in their header). This also leaves every kernel in PyCUDA's cache, compiled on all cores. Then the other notebooks, one after
the other, alone on the GPU. Each notebook has a kernel process of its own. A recording replaces the old one in one step;
whatever fails leaves the old one untouched.

Nothing here imports Jupyter before it is needed.
"""

import asyncio
import copy
import datetime
import json
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from functools import partial
from importlib import metadata as packages
from pathlib import Path
from typing import Any

from cudatut import catalog, doctor, failures, paths, recording
from cudatut.catalog import Example
from cudatut.errors import CudatutError, NoGpuError, ToolMissing
from cudatut.files import write_whole
from cudatut.record import outputs, session
from cudatut.results import Sanitizer
from cudatut.tool import SANITIZERS

RACECHECK = "racecheck"

# Instrumented kernels are slow: each tool gets this many times an example's own limit.
SANITIZER_TIME = 2

_TITLE = re.compile(r"[a-z0-9-]{1,64}")
_ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


class RecordingFailed(CudatutError):
    """An example could not be recorded; the message names example and cell."""

    def __init__(self, name: str, reason: str, cell: str | None = None):
        super().__init__(f"{name}, cell '{cell}': {reason}" if cell else f"{name}: {reason}")
        self.name, self.cell, self.reason = name, cell, reason


class UnwritableError(CudatutError):
    """Recordings cannot be written where they belong."""


@dataclass
class Executed:
    """An example that ran: its notebook (nbformat 4, outputs cleaned), what its kernel reported, and the seconds it took."""

    example: Example
    notebook: Any
    session: dict[str, Any]
    duration_s: float
    sources: dict[str, str | None]


@dataclass
class Outcome:
    """What became of one example: `status` is "recorded", "failed" or "skipped"; `reason` says why not recorded."""

    name: str
    status: str
    reason: str = ""


@dataclass
class Progress:
    """How far recording has come; the command line shows it. Every method may be called from any thread."""

    start: Callable[[str, int], None] = lambda phase, total: None
    step: Callable[[str], None] = lambda what: None
    done: Callable[[str], None] = lambda what: None
    outcome: Callable[[Outcome], None] = field(default=lambda outcome: None)


# --- one notebook --------------------------------------------------------------------------------


def notebook_of(example: Example) -> Any:
    """The notebook (nbformat 4) that an example's cells make, not yet run: a cell's id is its title.

    Raises RecordingFailed for a code cell without title, a title that is no address, or one used twice.
    """
    import jupytext
    import nbformat

    read = jupytext.reads(example.path.read_text(encoding="utf-8"), fmt="py:percent")
    notebook = nbformat.v4.new_notebook(metadata=_notebook_metadata())
    seen = {recording.INSTALL_CELL, _SESSION_CELL}
    texts = 0
    for cell in read.cells:
        if cell.cell_type == "markdown":
            texts += 1
            notebook.cells.append(nbformat.v4.new_markdown_cell(cell.source, id=f"md-{texts}"))
            continue
        if cell.cell_type != "code":
            raise RecordingFailed(
                example.name, f"a '{cell.cell_type}' cell; only code and markdown are recorded"
            )
        title = cell.metadata.get("title", "")
        if not _TITLE.fullmatch(title) or title.startswith("md-"):
            start = cell.source.strip().split("\n")[0]
            raise RecordingFailed(
                example.name,
                f"the cell that begins with `{start}` needs a title (a-z, 0-9, -) after '# %%'",
            )
        if title in seen:
            raise RecordingFailed(
                example.name, "this title is used twice, or is cudatut's own", title
            )
        seen.add(title)
        notebook.cells.append(
            nbformat.v4.new_code_cell(cell.source, id=title, metadata={"title": title})
        )
    return notebook


def record_notebook(
    example: Example,
    on_cell: Callable[[str], None] = lambda title: None,
    turn: AbstractContextManager[Any] | None = None,
) -> Executed:
    """Run an example as a notebook in a kernel process of its own.

    `on_cell` hears the title of each cell as it starts. The process starts at once and waits for `turn` before its first
    cell; the turn ends when the process is gone, and with it all that it had on the GPU.
    Needs no GPU by itself; the session tells whether one was there.
    Raises RecordingFailed naming the cell that raised, killed its process, or ran past the example's time limit;
    the kernel's whole process group is killed then.
    """
    import nbformat
    from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

    notebook, before = notebook_of(example), _hashes(example)
    last = (
        f"from cudatut.record.session import session_report\nsession_report({str(example.path)!r})"
    )
    notebook.cells.append(nbformat.v4.new_code_cell(last, id=_SESSION_CELL))
    duration = 0.0
    title: str | None = None
    with (
        _kernel(example, notebook) as (client, log, process),
        turn or nullcontext(),
        _ending(process),
    ):
        started = time.monotonic()
        deadline = started + example.timeout_s
        client.timeout_func = lambda cell: max(0.01, deadline - time.monotonic())
        try:
            for number, cell in enumerate(notebook.cells):
                if cell.cell_type != "code":
                    continue
                title = cell.id
                if title == _SESSION_CELL:
                    duration = time.monotonic() - started
                    deadline = time.monotonic() + 60
                else:
                    on_cell(title)
                client.execute_cell(cell, number)
        except CellTimeoutError:
            raise RecordingFailed(
                example.name,
                f"ran past the example's limit of {example.timeout_s:g} s and was ended",
                title,
            ) from None
        except CellExecutionError as error:
            raise RecordingFailed(example.name, _explained(error), title) from None
        except DeadKernelError:
            raise RecordingFailed(example.name, f"the process died{_tail(log)}", title) from None
    report = _session(example, notebook.cells.pop())
    outputs.clean(notebook)
    after = {
        name: recording.source_hash(paths.examples_dir() / name)
        for name in {*before, *report.pop("sources")}
    }
    if any(before[name] != after[name] for name in before):
        raise RecordingFailed(example.name, "its source changed while it was being recorded")
    return Executed(example, notebook, report, round(duration, 1), dict(sorted(after.items())))


_SESSION_CELL = "cudatut-session"


@contextmanager
def _kernel(example: Example, notebook: Any) -> Iterator[tuple[Any, Path, subprocess.Popen]]:
    """A connected client of a fresh kernel in an empty working folder, its stderr and its process, which is ended at last."""
    from jupyter_client import AsyncKernelManager
    from jupyter_client.kernelspec import KernelSpec, KernelSpecManager
    from nbclient import NotebookClient

    class ThisInterpreter(KernelSpecManager):
        """The running interpreter as the only kernel, whatever kernelspecs are or are not installed."""

        def get_kernel_spec(self, kernel_name: str) -> KernelSpec:
            path = f"import sys; sys.path.insert(0, {str(example.path.parent)!r}); del sys"  # as `python FILE` does
            argv = [
                sys.executable,
                "-Xfrozen_modules=off",
                "-m",
                "ipykernel_launcher",
                "-f",
                "{connection_file}",
            ]
            argv += ["--HistoryManager.enabled=False", f"--IPKernelApp.exec_lines={path}"]
            if sys.platform != "win32":
                argv += [
                    "--IPKernelApp.capture_fd_output=False",
                    "--IPKernelApp.extra_extensions=cudatut.record.session",
                ]
            return KernelSpec(argv=argv, display_name="Python 3", language="python")

    with tempfile.TemporaryDirectory(prefix="cudatut-", ignore_cleanup_errors=True) as folder:
        connection = Path(folder, "kernel.json")
        # Sockets in a private folder rather than ports that any user of the machine could connect to; a Unix socket's
        # path has room for some 100 characters.
        ipc = sys.platform != "win32" and len(os.fsencode(connection)) < 90
        manager = AsyncKernelManager(
            kernel_spec_manager=ThisInterpreter(),
            kernel_name="python3",
            connection_file=str(connection),
            transport="ipc" if ipc else "tcp",
        )
        client = NotebookClient(
            notebook,
            km=manager,
            startup_timeout=120,
            iopub_timeout=30,
            raise_on_iopub_timeout=True,
            force_raise_errors=True,
            record_timing=False,
            shutdown_kernel="immediate",
        )
        work, log = Path(folder, "work"), Path(folder, "stderr")
        work.mkdir()
        torch = "torch" in example.path.read_text(encoding="utf-8")  # it takes seconds to import
        env = environment() | {
            "CUDATUT_RECORDING": "1",
            "CUDATUT_EXAMPLE": str(example.path),
            "CUDATUT_IMPORTS": "numpy pycuda.gpuarray cupy" + " torch" * torch,
            "PYTHONHASHSEED": "0",
            "IPYTHONDIR": str(Path(folder, "ipython")),
        }
        env.pop("CUDATUT_TOOL", None)
        process = None
        # Opened for reading too, which is how the kernel follows them: see `load_ipython_extension`.
        with Path(folder, "stdout").open("a+b") as stdout, log.open("a+b") as stderr:
            try:
                try:
                    client.start_new_kernel(env=env, cwd=str(work), stdout=stdout, stderr=stderr)
                    process = manager.provisioner.process
                    _under_way.add(process.pid)
                    client.start_new_kernel_client()
                except (RuntimeError, OSError) as error:
                    reason = f"its process did not start: {error}{_tail(log)}"
                    raise RecordingFailed(example.name, reason) from error
                yield client, log, process
            finally:
                with suppress(Exception):
                    _cancel_waiting()
                if process:
                    _end(process)
                with suppress(Exception):
                    client._cleanup_kernel()


_under_way: set[int] = set()  # ids of the kernels' processes, each the leader of a group


def _end(process: subprocess.Popen) -> None:
    """Kill a kernel and what its example has started, unless that was done; then all it had on the GPU is free."""
    if process.pid not in _under_way:
        return
    _under_way.discard(process.pid)
    _kill(process.pid)
    process.wait()


@contextmanager
def _ending(process: subprocess.Popen) -> Iterator[None]:
    try:
        yield
    finally:
        _end(process)


def _kill(leader: int) -> None:
    with suppress(OSError):
        if hasattr(os, "killpg"):
            os.killpg(leader, signal.SIGKILL)
        else:
            os.kill(leader, signal.SIGTERM)  # Windows: ends the process at once


def _cancel_waiting() -> None:
    """End what nbclient still waits for after a cell that failed or was interrupted, or it would complain later."""
    from jupyter_core.utils import ensure_event_loop

    loop = ensure_event_loop()
    if loop.is_running():  # somebody else's, and nbclient took one of its own
        return
    waiting = asyncio.all_tasks(loop)
    for task in waiting:
        task.cancel()
    if waiting:
        loop.run_until_complete(asyncio.gather(*waiting, return_exceptions=True))


def environment() -> dict[str, str]:
    """The environment for a child that imports this very cudatut, installed or not."""
    here = str(Path(__file__).resolve().parent.parent)
    known = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    return os.environ | {
        "PYTHONPATH": os.pathsep.join([here, *(path for path in known if path and path != here)])
    }


def _explained(error: Any) -> str:
    text = _ANSI.sub("", error.traceback)
    line = re.search(r"^-+> *(\d+) (.*)$", text, re.MULTILINE)
    where = f" (line {line[1]}: `{line[2].strip()}`)" if line else ""
    return f"raised {error.ename}: {_ANSI.sub('', str(error.evalue))}{where}"


def _tail(log: Path) -> str:
    lines = log.read_text(errors="replace").strip().splitlines()[-5:] if log.exists() else []
    return "; it said last:\n" + "\n".join(f"    {line}" for line in lines) if lines else ""


def _session(example: Example, cell: Any) -> dict[str, Any]:
    for output in cell.outputs:
        if session.MIME in output.get("data", {}):
            return json.loads(json.dumps(output.data[session.MIME]))
    raise RecordingFailed(example.name, "its kernel reported nothing about its session")


# --- the file ------------------------------------------------------------------------------------


def _notebook_metadata() -> dict[str, Any]:
    return {
        "kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"},
        "language_info": {"name": "python"},
        # Colab gives the notebook a GPU.
        "accelerator": "GPU",
        "colab": {"gpuType": "T4"},
    }


def _install_cell(name: str) -> Any:
    """The first cell of the notebook of this example: what it needs where it is opened outside a checkout."""
    import nbformat

    source = (
        "try:\n"
        "    import cudatut.notebook\n"
        "except ImportError:  # such as in Colab: this compiles PyCUDA, which takes minutes\n"
        f'    %pip install -q "cudatut[gpu] @ git+{repository()}"\n'
        "    import cudatut.notebook\n"
        "\n"
        "    cudatut.notebook.install_cupy()\n"
        f'cudatut.notebook.prepare("{name}")'
    )
    title = recording.INSTALL_CELL
    return nbformat.v4.new_code_cell(source, id=title, metadata={"title": title})


def repository() -> str:
    """Address of the project's repository, from pyproject.toml or from what pip kept of it."""
    root = paths.repo_root()
    if root:
        import tomllib

        return tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"][
            "urls"
        ]["Repository"]
    for entry in packages.metadata("cudatut").get_all("Project-URL") or []:
        label, _, address = entry.partition(", ")
        if label == "Repository":
            return address
    raise CudatutError("cudatut's own metadata names no repository; install it again")


def write(executed: Executed, sanitizers: list[Sanitizer]) -> Path:
    """Put a recording in its place, in one step, if it is whole and good. Returns its path.

    Raises RecordingFailed otherwise, and UnwritableError; the old recording is untouched then.
    """
    import nbformat

    example = executed.example
    if executed.session["gpu"] is None:
        raise RecordingFailed(example.name, "its kernel saw no GPU")
    notebook = copy.deepcopy(executed.notebook)
    notebook.cells.insert(0, _install_cell(example.name))
    notebook.metadata["cudatut"] = {
        "schema": recording.SCHEMA,
        "name": example.name,
        "title": example.title,
        "requires": example.requires,
        "sources": executed.sources,
        "gpu": executed.session["gpu"],
        "toolchain": executed.session["toolchain"],
        "recorded_at": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "commit": commit(executed.sources),
        "duration_s": executed.duration_s,
        "sanitizers": [sanitizer.json() for sanitizer in sanitizers],
    }
    nbformat.validate(notebook)
    # Over what will be read from the file, not over what was to be written.
    unsigned = recording.parse(example.name, example.notebook, _raw(notebook))
    notebook.metadata["cudatut"]["digest"] = unsigned.digest()
    raw = _raw(notebook)
    made = recording.parse(example.name, example.notebook, raw)
    if made.problems():
        raise RecordingFailed(example.name, "; ".join(made.problems()))
    if made.stale():
        raise RecordingFailed(
            example.name, f"{', '.join(made.stale())} changed while it was being recorded"
        )
    try:
        write_whole(example.notebook, raw)
    except OSError as error:
        raise UnwritableError(f"{example.notebook} cannot be written: {error.strerror}") from error
    return example.notebook


def _raw(notebook: Any) -> bytes:
    """A notebook as the bytes of its file."""
    import nbformat

    return (nbformat.writes(notebook, version=4).rstrip("\n") + "\n").encode()


def commit(sources: Iterable[str]) -> str:
    """Commit that the sources come from, with "-dirty" if any of them differs from it; "unknown" without git.

    $CUDATUT_COMMIT, where it is set, says it instead: for a copy on another machine, which has no .git or an old one.
    """
    if said := os.environ.get("CUDATUT_COMMIT"):
        return said
    root = paths.repo_root()
    if root:
        examples = paths.examples_dir()
        head = _git(root, "rev-parse", "HEAD")
        if head:
            changed = _git(
                root, "status", "--porcelain", "--", *(str(examples / name) for name in sources)
            )
            return head + ("" if changed == "" else "-dirty")
    return "unknown"


def _git(root: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(root), *arguments], capture_output=True, text=True, timeout=60
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


# --- many examples -------------------------------------------------------------------------------


def record_all(
    names: Iterable[str] = (),
    *,
    only_stale: bool = False,
    jobs: int | None = None,
    progress: Progress | None = None,
) -> list[Outcome]:
    """Record the named examples (all without names; of them only those not fresh and good with `only_stale`).

    jobs: how many sanitizers, or notebooks that measure no time, run side by side (default: as many as cores, at most 15).
    Before any of them runs, refuses with UnknownExampleError, UnwritableError, RecordingFailed (a cell without title),
    ToolMissing or NoGpuError. After that an example that fails does not stop the others: see the outcomes.
    """
    examples = [catalog.get(name) for name in dict.fromkeys(names)] or catalog.examples()
    if only_stale:
        examples = [example for example in examples if not is_fresh(example.name)]
    if not examples:
        return []
    require_writable(examples)
    _require_jupyter()
    for example in examples:
        notebook_of(example)
    gpu = probe_gpu()
    if shutil.which("compute-sanitizer") is None:
        raise ToolMissing(
            "compute-sanitizer is not on PATH, and a recording without it is not whole; it comes with the CUDA toolkit"
        )
    # The kernels and the sanitizers' children must import this cudatut.
    os.environ["PYTHONPATH"] = environment()["PYTHONPATH"]
    from cudatut.gpu import sanitizer

    cores = os.cpu_count() or 1
    jobs = jobs or min(15, cores)
    sanitize = partial(sanitizer.run, workers=max(1, cores // _racing(jobs)))
    # CUB takes nvcc some ten seconds, and no sanitizer asks for it: without this the first contest would wait for it.
    code = "from cudatut.gpu.vendor import compile_ahead; compile_ahead()"
    with (
        _scratch(),
        subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.DEVNULL),
    ):
        return record_examples(
            examples, gpu["name"], gpu["compute_capability"], sanitize, jobs=jobs, progress=progress
        )


@contextmanager
def _scratch() -> Iterator[None]:
    """A folder, gone at the end, in which the children note what the profiler will be asked for (see `cudatut.gpu.ncu`).

    Where Python is told to write no bytecode they keep that there, too: hundreds of processes import the same modules,
    and each would compile them anew.
    """
    with tempfile.TemporaryDirectory(prefix="cudatut-", ignore_cleanup_errors=True) as folder:
        changed = {"CUDATUT_NOTES": folder}
        if os.environ.get("PYTHONDONTWRITEBYTECODE"):
            changed |= {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": f"{folder}/bytecode"}
        before = {name: os.environ.get(name) for name in changed}
        os.environ.update(changed)
        try:
            yield
        finally:
            for name, value in before.items():
                if value is None:
                    del os.environ[name]
                else:
                    os.environ[name] = value


def record_examples(
    examples: list[Example],
    gpu_name: str,
    capability: tuple[int, int],
    sanitize: Callable[[list[Path], str, float], Sanitizer],
    *,
    jobs: int = 1,
    progress: Progress | None = None,
) -> list[Outcome]:
    """The two phases of `record_all`, on a GPU known to be there: what measures no time, then what does."""
    progress = progress or Progress()
    outcomes: dict[str, Outcome] = {}

    def settle(name: str, status: str, reason: str = "") -> None:
        outcomes[name] = Outcome(name, status, reason)
        if status == "failed":
            failures.keep(name, reason)
        elif status == "recorded":
            failures.forget(name)
        progress.outcome(outcomes[name])

    able = []
    for example in examples:
        if _supports(capability, example.requires):
            able.append(example)
        else:
            needs = f"needs {example.requires}, and {gpu_name} is sm_{capability[0]}{capability[1]}"
            settle(example.name, "skipped", needs)
    watched_sources = {example.name: _hashes(example) for example in able}
    found: dict[str, dict[str, Sanitizer | Exception]] = {example.name: {} for example in able}

    def watch(batch: list[Example], tool: str) -> None:
        """One process for all of them; where it fails or finds something, one for each, which tells whose it is."""
        started = time.monotonic()
        try:
            # No sum of them: one that hangs would hold up all others of its process for as long.
            limit = (
                SANITIZER_TIME * max(example.timeout_s for example in batch) * min(len(batch), 2)
            )
            result = sanitize([example.path for example in batch], tool, limit)
        except Exception as error:  # whatever it is, the others go on
            result = error
        if len(batch) > 1 and (isinstance(result, Exception) or result.errors):
            for example in batch:
                watch([example], tool)
            return
        took = f"{time.monotonic() - started:.1f} s"
        for example in batch:
            found[example.name][tool] = result
            progress.done(f"{example.name} {tool} ({took} for {len(batch)})")

    def execute(
        example: Example, turn: AbstractContextManager[Any] | None = None
    ) -> Executed | Exception:
        try:
            return record_notebook(
                example, lambda cell: progress.step(f"{example.name} {cell}"), turn
            )
        except Exception as error:
            return error
        finally:
            progress.done(example.name)

    def finish(example: Example, run: Executed | Exception) -> None:
        try:
            if isinstance(run, Exception):
                raise run
            if any(
                run.sources[name] != seen for name, seen in watched_sources[example.name].items()
            ):
                raise RecordingFailed(
                    example.name, "its source changed while it was being recorded"
                )
            write(run, _all_clean(example.name, found[example.name]))
        except Exception as error:
            settle(example.name, "failed", _reason(example.name, error))
        else:
            settle(example.name, "recorded")

    together = [example for example in able if not example.alone]
    progress.start("side by side", len(able) * len(SANITIZERS) + len(together))
    # All examples under one tool, then under the next: runs of one example at the same time would each compile its
    # kernels, where the later ones now find them in the cache. For the same reason racecheck begins at the end.
    batches = _batches(able, jobs)
    to_race = deque(batches)

    def race() -> None:
        while to_race:
            with suppress(IndexError):  # another has taken the last one
                watch(to_race.pop(), RACECHECK)

    racing = _racing(jobs)
    with _workers(jobs) as pool:
        watching = [pool.submit(race) for _ in range(racing)]
        watching += [
            pool.submit(watch, batch, tool)
            for tool in SANITIZERS
            if tool != RACECHECK
            for batch in batches
        ]
        running = [(example, pool.submit(execute, example)) for example in together]
        watching += [pool.submit(race) for _ in range(racing)]  # who has nothing else to do helps
        wait(watching)
        for example, run in running:
            finish(example, run.result())

    alone = [example for example in able if example.alone]
    progress.start("alone on the GPU", len(alone))
    # Two of them, so that the next process has started, imported and connected when the one before it ends.
    turn = threading.Lock()
    with _workers(2) as pool:
        for example, run in [(example, pool.submit(execute, example, turn)) for example in alone]:
            finish(example, run.result())
    return [outcomes[example.name] for example in examples]


# Examples that share a process under a tool. To open the GPU takes a second there, half of it or more in the driver (an
# H100 with 16 cores). Memcheck of all 86, their kernels compiled before, took 16 s in 18 processes; 29 of them, each in
# one of its own, had taken 11 s.
_BATCH = 5


def _batches(examples: list[Example], jobs: int) -> list[list[Example]]:
    """Examples by process, each from all over the book, and at least as many processes as run side by side."""
    count = max(math.ceil(len(examples) / _BATCH), min(jobs, len(examples)))
    return [examples[first::count] for first in range(count)]


def _racing(jobs: int) -> int:
    """How many of the runs side by side are racecheck's: more would wait for one another on the GPU."""
    return max(1, jobs // 3)


@contextmanager
def _workers(count: int) -> Iterator[ThreadPoolExecutor]:
    """Threads for the length of a phase. What interrupts it (Ctrl-C) ends the kernels that run, and starts no others."""
    pool = ThreadPoolExecutor(count)
    try:
        yield pool
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        for leader in tuple(_under_way):
            _kill(leader)
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _hashes(example: Example) -> dict[str, str | None]:
    return {name: recording.source_hash(paths.examples_dir() / name) for name in example.sources()}


def _reason(name: str, error: Exception) -> str:
    return str(error) if isinstance(error, CudatutError) else f"{name}: {error!r}"


def _all_clean(name: str, found: dict[str, Sanitizer | Exception]) -> list[Sanitizer]:
    reasons = []
    for tool in SANITIZERS:
        result = found[tool]
        if isinstance(result, Exception):
            reasons.append(f"{tool} did not finish: {result}")
        elif result.errors:
            report = [line for line in result.log.splitlines() if line.strip(" =")][:20]
            reasons.append("\n    ".join([f"{tool} found {result.errors} errors", *report]))
    if reasons:
        raise RecordingFailed(name, "; ".join(reasons))
    return [found[tool] for tool in SANITIZERS]


def is_fresh(name: str) -> bool:
    """Whether a recording exists and is whole, fresh and good."""
    try:
        recording.require_good(name)
    except CudatutError:
        return False
    return True


def require_writable(examples: Iterable[Example]) -> None:
    """Raises UnwritableError, naming the folder, unless every recording can be written."""
    for folder in sorted({example.notebook.parent for example in examples}):
        try:
            with tempfile.NamedTemporaryFile(dir=folder, prefix=".cudatut-"):
                pass
        except OSError as error:
            raise UnwritableError(
                f"recordings cannot be written to {folder}: {error.strerror}. Make the checkout writable, or set "
                "CUDATUT_EXAMPLES to a copy of examples/ that is"
            ) from error


def _require_jupyter() -> None:
    try:
        import ipykernel  # noqa: F401
        import jupytext  # noqa: F401
        import nbclient  # noqa: F401
    except ImportError as error:
        raise ToolMissing(
            f"recording needs '{error.name}': `{doctor.pip_install('record')}`"
        ) from error


def probe_gpu() -> dict[str, Any]:
    """Name and compute capability of the GPU, asked in a child process so that this one holds no context on it.

    Raises NoGpuError saying what was looked for.
    """
    code = "from cudatut.record.recorder import _print_gpu; _print_gpu()"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment(), timeout=120
    )
    try:
        answer = json.loads(done.stdout.strip().splitlines()[-1])
    except (ValueError, IndexError):
        raise NoGpuError(
            f"asking for the GPU failed: {(done.stderr or done.stdout).strip()[-2000:]}"
        ) from None
    if "error" in answer:
        raise NoGpuError(answer["error"])
    return {"name": answer["name"], "compute_capability": tuple(answer["compute_capability"])}


def _print_gpu() -> None:
    from cudatut.gpu.device import device

    try:
        gpu = device()
        print(json.dumps({"name": gpu.name, "compute_capability": gpu.compute_capability}))
    except CudatutError as error:
        print(json.dumps({"error": str(error)}))


def _supports(capability: tuple[int, int], requires: str) -> bool:
    from cudatut.gpu.device import supports

    return supports(capability, requires)
