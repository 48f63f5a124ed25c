"""What the SMs note of their clock, the gate in a stream, and the probes, with kernels that write what a test says."""

from types import SimpleNamespace

import numpy as np
import pytest

from cudatut.gpu import gate, probes, sm_clock


@pytest.fixture
def launches(monkeypatch):
    """What is launched: (kernel, arguments, grid, block)."""
    found = []

    def probe(name):
        return lambda *arguments, grid, block: found.append((name, arguments, grid, block))

    gpu = SimpleNamespace(sm_count=4)
    for module in (gate, probes, sm_clock):
        monkeypatch.setattr(module, "probe", probe)
    for module in (probes, sm_clock):
        monkeypatch.setattr(module, "device", lambda: gpu)
        monkeypatch.setattr(module, "empty", lambda shape, dtype: Notes(shape, dtype))
    return found


class Notes:
    """An array on the GPU, as far as it is read."""

    def __init__(self, shape, dtype):
        self.host = np.zeros(shape, dtype)

    def get(self):
        return self.host.copy()


def noted(stamps, *sms):
    """What the last run's SMs noted: (cycles and ns before, cycles and ns after, numbers of both runs)."""
    first, last = (notes.host for notes in stamps._notes)
    for sm, (before, after, runs) in enumerate(sms):
        first[sm], last[sm] = (*before, runs[0]), (*after, runs[1])


def test_the_clock_is_the_median_of_the_sms_that_made_both_notes(launches):
    stamps = sm_clock.Stamps()
    assert stamps.mhz() is None
    stamps.before(), stamps.after()
    assert [name for name, *_ in launches] == ["stamp_probe"] * 2
    assert [(arguments[0], arguments[2]) for _, arguments, *_ in launches] == [
        (stamps._notes[0], 1), (stamps._notes[1], 1),
    ]  # fmt: skip
    assert {(grid, block) for *_, grid, block in launches} == {(8, 32)}
    good = (1, 1)
    noted(
        stamps,
        ((1000, 50), (4000, 2050), good),  # 1500 MHz
        ((0, 0), (1700, 1000), good),
        ((0, 0), (1600, 1000), good),
        ((0, 0), (9000, 1000), (0, 1)),  # of another run
        ((0, 0), (9000, 1000), (1, 0)),
        ((0, 7), (9000, 7), good),  # no time between them
    )
    assert stamps.mhz() == 1600
    stamps.before()
    assert stamps.mhz() is None, "the notes are of the run before"


def test_a_gate_has_numbers_of_its_own_which_are_never_0(launches, monkeypatch):
    words = np.zeros(2, np.uint32).view(Words)
    cuda = SimpleNamespace(
        pagelocked_zeros=lambda count, dtype, mem_flags: words,
        host_alloc_flags=SimpleNamespace(DEVICEMAP=2),
    )
    monkeypatch.setattr(gate, "pycuda_driver", lambda: cuda)
    one = gate.Gate()
    for number in (1, 2):
        one.shut()
        assert launches[-1] == ("gate_probe", (4096, 4100, number, gate._PATIENCE_NS), 1, 1)
        assert words[0] == number - 1, "shut"
        one.open()
        assert words[0] == number and one.held()
        words[1] = number  # it lost patience
        assert not one.held()
    one._number = 0xFFFF_FFFE
    numbers = []
    for _ in range(3):
        one.shut()
        numbers.append(launches[-1][1][2])
    assert numbers == [0xFFFF_FFFF, 1, 2]


class Words(np.ndarray):
    """Words in the host's memory that the GPU sees."""

    base = SimpleNamespace(get_device_pointer=lambda: 4096)


def test_probes_cover_the_array(launches):
    words, sink = SimpleNamespace(size=4 * 5000), object()
    probes.read_once(words, sink)
    assert launches[-1] == ("read_probe", (words, 5000, sink), 3, 512)
    made = probes.random_words(77)
    name, arguments, grid, block = launches[-1]
    assert (name, arguments[1], grid, block) == ("fill_probe", 77, 32, 256)
    assert arguments[0] is made and made.host.shape == (77,) and made.host.dtype == "uint32"
