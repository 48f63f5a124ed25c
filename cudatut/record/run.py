"""Run one example as a notebook, in a Jupyter kernel process of its own.

Nothing here imports Jupyter before it is needed.
"""

import asyncio
import json
import os
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cudatut import processes, recording, tool, words
from cudatut.catalog import Example
from cudatut.fingerprint import ran
from cudatut.record import outputs, session
from cudatut.to_notebook import SESSION_CELL, RecordingFailed, notebook_of

_ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


@dataclass
class Executed:
    """An example that ran: its notebook (nbformat 4, outputs cleaned), what its kernel reported, and the seconds it took.

    sources: SHA-256 of each file that it ran or read. meanings: of those whose meaning counts, not their text, its hash.
    """

    example: Example
    notebook: Any
    session: dict[str, Any]
    duration_s: float
    sources: dict[str, str | None]
    meanings: dict[str, str]

    @property
    def gpu(self) -> dict[str, Any]:
        """What its kernel told of its GPU. Raises RecordingFailed where it saw none."""
        if self.session["gpu"] is None:
            raise RecordingFailed(self.example.name, "its kernel saw no GPU")
        return self.session["gpu"]


def record_notebook(
    example: Example, on_cell: Callable[[str], None] = lambda title: None
) -> Executed:
    """Run an example as a notebook in a kernel process of its own; needs no GPU by itself.

    `on_cell` hears the title of each cell as it starts. When this returns the process is gone, and with it all that it had
    on the GPU. Raises RecordingFailed naming the cell that raised, killed its process, or ran past the example's time
    limit; the kernel's whole process group is killed then.
    """
    import nbformat
    from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

    notebook, title, duration = notebook_of(example), None, 0.0
    last = "from cudatut.record.session import session_report\nsession_report()"
    notebook.cells.append(nbformat.v4.new_code_cell(last, id=SESSION_CELL))
    with _kernel(example, notebook) as (client, log):
        started = time.monotonic()
        deadline = started + example.timeout_s
        client.timeout_func = lambda cell: max(0.01, deadline - time.monotonic())
        try:
            for number, cell in enumerate(notebook.cells):
                if cell.cell_type != "code":
                    continue
                title = cell.id
                if title == SESSION_CELL:
                    duration = time.monotonic() - started
                    deadline = time.monotonic() + 60
                else:
                    on_cell(title)
                client.execute_cell(cell, number)
        except CellTimeoutError:
            reason = f"ran past the example's limit of {example.timeout_s:g} s and was ended"
            raise RecordingFailed(example.name, reason, title) from None
        except CellExecutionError as error:
            raise RecordingFailed(example.name, _explained(error), title) from None
        except DeadKernelError:
            raise RecordingFailed(example.name, f"the process died{_tail(log)}", title) from None
    report = _session(example, notebook.cells.pop())
    outputs.clean(notebook)
    # The example's own cells were run by the notebook: no module, no script.
    ways = {example.file: "meaning"} | report.pop("files")
    meanings = recording.meanings(name for name, way in ways.items() if way == "meaning")
    sources = recording.hashes(ways)
    return Executed(example, notebook, report, round(duration, 1), sources, meanings)


@contextmanager
def _kernel(example: Example, notebook: Any) -> Iterator[tuple[Any, Path]]:
    """A connected client of a fresh kernel in an empty working folder, its stderr and its process, which is ended at last."""
    from jupyter_client import AsyncKernelManager
    from jupyter_client.kernelspec import KernelSpec, KernelSpecManager
    from nbclient import NotebookClient

    class ThisInterpreter(KernelSpecManager):
        """The running interpreter as the only kernel, whatever kernelspecs are or are not installed."""

        def get_kernel_spec(self, kernel_name: str) -> KernelSpec:
            argv = [sys.executable, "-Xfrozen_modules=off", "-m", "ipykernel_launcher"]
            argv += ["-f", "{connection_file}", "--HistoryManager.enabled=False"]
            if sys.platform != "win32":
                argv += ["--IPKernelApp.capture_fd_output=False"]
                argv += ["--IPKernelApp.extra_extensions=cudatut.record.session"]
            return KernelSpec(argv=argv, display_name="Python 3", language="python")

    with tempfile.TemporaryDirectory(prefix="cudatut-", ignore_cleanup_errors=True) as folder:
        connection = Path(folder, "kernel.json")
        # Sockets in a private folder rather than ports that any user of the machine could connect to; a Unix socket's
        # path has room for some 100 characters.
        ipc = sys.platform != "win32" and len(os.fsencode(connection)) < 90
        manager: Any = AsyncKernelManager(  # whose type knows of no process
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
        env = tool.environment() | {
            "CUDATUT_RECORDING": "1",
            words.VARIABLE: "en",
            ran.VARIABLE: str(Path(folder, "ran")),
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
                    processes.under_way.add(process.pid)
                    client.start_new_kernel_client()
                except (RuntimeError, OSError) as error:
                    reason = f"its process did not start: {error}{_tail(log)}"
                    raise RecordingFailed(example.name, reason) from error
                yield client, log
            finally:
                with suppress(Exception):
                    _cancel_waiting()
                if process:
                    processes.end(process)
                with suppress(Exception):
                    client._cleanup_kernel()


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
