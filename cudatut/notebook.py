"""What the first cell of a notebook does where it is opened outside a checkout, such as in Colab."""

import importlib
import subprocess
import sys

from cudatut import catalog, libraries, paths, runs_on, words
from cudatut.catalog import Example
from cudatut.errors import ToolMissing, UnsupportedGpuError
from cudatut.gpu import device

_say = words.section("notebook")


def install_cupy() -> None:
    """Install the CuPy that this machine's driver can run, if there is one, for the vendor's rows of the benchmarks.

    A failure is told, and stops nothing: the benchmarks then say why they lack those rows.
    """
    package = device.cupy_package()
    if package is None or libraries.installed("cupy"):
        return
    command = [sys.executable, "-m", "pip", "install", "-q", package]
    done = subprocess.run(command, capture_output=True, text=True)
    importlib.invalidate_caches()  # what pip has just brought is to be found
    if done.returncode:
        last = (done.stderr.strip().splitlines() or [_say("no reason")])[-1]
        print(_say("no cupy", package=package, reason=last))


def prepare(name: str) -> None:
    """Say at once what is missing to run a notebook here.

    name: the example's, such as "gemm/final_kernel". Raises UnsupportedGpuError where the GPU has less than the example
    needs, and ToolMissing without what it cannot do without, before any of its cells fetches something. Without a GPU it
    prints what is missing: the first cells may still be of use.
    """
    example = catalog.get(name)
    if no_gpu := device.why_no_gpu():
        print(_say("needs gpu", why=no_gpu))
        print(_say("in colab", choose=_choose(example)))
        if libraries.missing("gpu"):
            print(_say("no pycuda"))
        _require(example, example.extra)
        return
    if lacks := device.gpu_lacks(example.requires):
        choose = _choose(example)
        raise _TooOld(_say("too old", name=example.name, lacks=lacks, choose=choose))
    _require(example, "gpu", example.extra)
    for lack in libraries.missing_beside(example):
        print(_say("lacks", name=lack.name))
        print(_say("to have it", command=lack.command))


def _choose(example: Example) -> str:
    """How one gets a GPU that is able to run an example, in Colab's words."""
    gpu = runs_on.colab(example.requires)
    if gpu is None:
        return _say("no colab")
    price = _say("free" if gpu == runs_on.FREE else "paid")
    return _say("choose", gpu=gpu, price=price)


def _require(example: Example, *extras: str) -> None:
    """Raises ToolMissing, with the command, where modules of these extras are not installed."""
    lacking = {extra: modules for extra in extras if (modules := libraries.missing(extra))}
    if lacking:
        missing = ", ".join(module for modules in lacking.values() for module in modules)
        command = f"%{paths.pip_install(','.join(lacking))}"
        own = {"name": example.name, "missing": missing, "command": command}
        raise _NotInstalled(_say("not installed", **own))


class _Short:
    """Of an error in a notebook, IPython shows the message alone: there is nothing to be learned from a traceback."""

    def _render_traceback_(self) -> list[str]:
        return [str(self)]


class _TooOld(_Short, UnsupportedGpuError):
    pass


class _NotInstalled(_Short, ToolMissing):
    pass
