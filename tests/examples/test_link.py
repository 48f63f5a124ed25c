"""examples/measure/link.py without a GPU: what a link carries, and what is read of one where NVML is silent."""

import pytest

from cudatut.book.measure import link


@pytest.mark.parametrize(
    ("generation", "lanes", "rate"), [(1, 16, 4.0), (3, 8, 7.877), (4, 16, 31.51), (5, 16, 63.02)]
)
def test_the_rate_of_a_link(generation, lanes, rate):
    assert link.Link(generation, lanes).rate == pytest.approx(rate, rel=1e-3)


def gpu(folder, speed, width):
    (folder / "0000:1b:00.0").mkdir()
    (folder / "0000:1b:00.0" / "current_link_speed").write_text(speed)
    (folder / "0000:1b:00.0" / "current_link_width").write_text(width)
    return folder


def test_what_linux_says_of_a_link(tmp_path):
    folder = gpu(tmp_path, "16.0 GT/s PCIe\n", "8\n")
    assert link._by_linux(folder, "0000:1B:00.0") == link.Link(4, 8)


@pytest.mark.parametrize(
    ("speed", "width"), [("Unknown", "16"), ("32.0 GT/s PCIe", "0"), ("7.0 GT/s", "8"), ("", "8")]
)
def test_what_is_no_link(tmp_path, speed, width):
    assert link._by_linux(gpu(tmp_path, speed, width), "0000:1B:00.0") is None


def test_a_gpu_that_nobody_knows(tmp_path, monkeypatch):
    assert link._by_linux(tmp_path, "0000:1B:00.0") is None
    monkeypatch.setattr(link, "_by_nvml", lambda _: None)
    monkeypatch.setattr(link, "_by_linux", lambda *_: None)
    with pytest.raises(RuntimeError, match="0000:1B:00.0"):
        link.now("0000:1B:00.0")


class Library:
    """NVML's four functions; status: of the one that asks for the width."""

    def __init__(self, generation, lanes, status=0):
        self.values, self.status = (generation, lanes), status

    def nvmlDeviceGetHandleByPciBusId_v2(self, bus_id, device):
        return 0 if bus_id == b"0000:1B:00.0" else 6

    def nvmlDeviceGetCurrPcieLinkGeneration(self, device, value):
        value._obj.value = self.values[0]
        return 0

    def nvmlDeviceGetCurrPcieLinkWidth(self, device, value):
        value._obj.value = self.values[1]
        return self.status


def test_what_nvml_says_of_a_link(monkeypatch):
    for library, bus_id, found in (
        (Library(5, 16), "0000:1B:00.0", link.Link(5, 16)),
        (Library(5, 16), "0000:2B:00.0", None),
        (Library(5, 16, status=3), "0000:1B:00.0", None),
        (Library(9, 16), "0000:1B:00.0", None),
        (None, "0000:1B:00.0", None),
    ):
        monkeypatch.setattr(link, "_nvml", lambda library=library: library)
        assert link._by_nvml(bus_id) == found


def test_the_link_while_something_runs_is_the_one_seen_most_often(monkeypatch):
    seen = iter([link.Link(1, 16), link.Link(5, 16), link.Link(5, 16), link.Link(1, 16)])
    monkeypatch.setattr(link, "now", lambda _: next(seen))
    turns = iter([True, True, False])
    assert link.while_busy("", lambda: next(turns)) == link.Link(5, 16)
