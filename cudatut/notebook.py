"""What the first cell of a notebook does where it is opened outside a checkout, such as in Colab."""

import subprocess
import sys
from importlib.util import find_spec

from cudatut import catalog
from cudatut.errors import UnsupportedGpuError
from cudatut.gpu import device


def install_cupy() -> None:
    """Install the CuPy that this machine's driver can run, if there is one, for the vendor's rows of the benchmarks.

    A failure is told, and stops nothing: the benchmarks then say why they lack those rows.
    """
    package = device.cupy_package()
    if package is None or find_spec("cupy") is not None:
        return
    command = [sys.executable, "-m", "pip", "install", "-q", package]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        print(f"{package} could not be installed ({last}): the benchmarks lack the vendor's rows")


def prepare(name: str) -> None:
    """Let a notebook import the modules beside its example, and say at once what is missing to run it here.

    name: the example's, such as "gemm/final_kernel". Raises UnsupportedGpuError where the GPU has less than the example
    needs. Without a GPU it prints what is missing: the first cells may still be of use.
    """
    example = catalog.get(name)
    folder = str(example.path.parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    if missing := device.why_no_gpu():
        print(f"This notebook needs a GPU, and there is none here: {missing}.")
        print("In Colab: Runtime > Change runtime type > a GPU, then run this cell again.")
    elif lacks := device.gpu_lacks(example.requires):
        raise _NotHere(
            f"{example.name} cannot run here: {lacks}. Its page shows a recording of it."
        )


class _NotHere(UnsupportedGpuError):
    """IPython shows the message alone: there is nothing to be learned from a traceback."""

    def _render_traceback_(self) -> list[str]:
        return [str(self)]
