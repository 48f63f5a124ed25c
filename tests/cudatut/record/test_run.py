"""An example runs in a Jupyter kernel of its own, here on the CPU."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest

from cudatut import catalog
from cudatut.record.run import record_notebook

pytest.importorskip("nbclient")
pytest.importorskip("jupytext")
pytest.importorskip("ipykernel")


def test_output_of_c_stays_in_its_cell_and_in_order(book):
    """Device printf is C's: a line that turned up a cell later would be shown beneath other code."""
    cells = "# %% setup\nimport ctypes, os, sys\nlibc = ctypes.CDLL(None)\nfrom IPython.display import display\n"
    for n in range(60):
        cells += f'# %% c{n}\nprint("py{n}")\n_ = libc.printf("核{n}\\n".encode())\n'
        cells += 'print("after")\n' if n % 2 else ""
        cells += (
            'libc.printf(b"shown\\n"); display({"text/plain": "x"}, raw=True)\n'
            if n % 3 == 0
            else ""
        )
        cells += '_ = os.system("echo child >&2")\n' if n % 5 == 0 else ""
    book.example("a/c", cells)
    executed = record_notebook(catalog.get("a/c"))
    assert 0 < executed.duration_s < 100  # and not the time since this machine was started
    for n, cell in enumerate(executed.notebook.cells[1:]):
        got = [output.get("text", "display") for output in cell.outputs]
        want = f"py{n}\n核{n}\n" + ("after\n" if n % 2 else "")
        want = [f"{want}shown\n", "display"] if n % 3 == 0 else [want]
        assert got == want + (["child\n"] if n % 5 == 0 else []), cell.id


def test_a_recording_is_in_english(book, monkeypatch):
    """Whatever the machine speaks."""
    monkeypatch.setenv("CUDATUT_LANG", "zh")
    cell = (
        "# %% check\nimport cudatut as ct\nimport numpy as np\nct.check(np.ones(2), np.ones(2))\n"
    )
    book.example("a/one", cell)
    executed = record_notebook(catalog.get("a/one"))
    # It counts by what its cells mean: another comment would change nothing.
    assert list(executed.meanings) == [catalog.get("a/one").file]
    (output,) = executed.notebook.cells[-1].outputs
    assert output.data["text/plain"].startswith("check output: passed (2 elements")


def test_a_loop_that_runs_in_this_thread_keeps_its_tasks(book):
    """Recording from a notebook, or beside Playwright: their tasks are not ours to cancel."""
    book.example("a/one", "# %% check\nprint('one')\n")

    async def main():
        other = asyncio.create_task(asyncio.sleep(0.01, "done"))
        executed = record_notebook(catalog.get("a/one"))
        assert executed.notebook.cells[-1].outputs[0].text == "one\n"
        return await other

    # In a thread of its own: in this one a loop may run already, Playwright's after a test with a browser.
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(asyncio.run, main()).result() == "done"
