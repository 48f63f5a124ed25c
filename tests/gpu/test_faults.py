"""Every planted fault is caught by what `kernel_faults.py` says catches it."""

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


@pytest.fixture
def watch(tmp_path, path_of_tests):
    def run(fault: faults.Fault, tool: str) -> int:
        script = tmp_path / "launch.py"
        script.write_text(f"import kernel_faults\nkernel_faults.launch({fault.name!r})\n")
        return sanitizer.run(script, tool).errors

    return run


@pytest.mark.parametrize("fault", WATCHED, ids=ids(WATCHED))
def test_sanitizer_notices(fault, watch):
    assert watch(fault, fault.caught_by) > 0


@pytest.mark.parametrize("tool", SANITIZERS)
def test_the_correct_kernel_is_clean(tool, watch):
    assert watch(faults.CONTROL, tool) == 0


def test_the_correct_kernel_passes():
    faults.CONTROL.run(ct.Kernel(faults.CONTROL.source, "k"))
