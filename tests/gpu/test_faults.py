"""Every planted fault is caught by what `kernel_faults.py` says catches it."""

from pathlib import Path

import kernel_faults as faults
import pytest

import cudatut as ct
from cudatut.gpu import sanitizer
from cudatut.tool import SANITIZERS

MESSAGES = {
    "check": "elements are wrong",
    "unwritten": "never written",
    "nan": "are NaN",
    "zone": "wrote outside its arrays",
}
IN_PROCESS = [fault for fault in faults.FAULTS if fault.caught_by in MESSAGES]
WATCHED = [fault for fault in faults.FAULTS if fault.caught_by in SANITIZERS]


def ids(values):
    return [fault.name for fault in values]


@pytest.mark.writes_outside
@pytest.mark.parametrize("fault", IN_PROCESS, ids=ids(IN_PROCESS))
def test_check_notices(fault):
    with pytest.raises(ct.CheckError, match=MESSAGES[fault.caught_by]):
        fault.run(ct.Kernel(fault.source, "k"))


def _watch(tmp_path: Path, fault: faults.Fault, tool: str) -> int:
    script = tmp_path / "launch.py"
    script.write_text(
        f"import runpy, sys\nsys.path.insert(0, {str(Path(faults.__file__).parent)!r})\n"
        f"sys.argv = ['kernel_faults.py', {fault.name!r}]\nrunpy.run_path({faults.__file__!r}, run_name='__main__')\n"
    )
    return sanitizer.run(script, tool).errors


@pytest.mark.parametrize("fault", WATCHED, ids=ids(WATCHED))
def test_sanitizer_notices(fault, tmp_path):
    assert _watch(tmp_path, fault, fault.caught_by) > 0


@pytest.mark.parametrize("tool", SANITIZERS)
def test_the_correct_kernel_is_clean(tool, tmp_path):
    assert _watch(tmp_path, faults.CONTROL, tool) == 0


def test_the_correct_kernel_passes():
    faults.CONTROL.run(ct.Kernel(faults.CONTROL.source, "k"))
