"""What ct.check says does not depend on the pieces in which it compares."""

import importlib.util
import re

import numpy as np
import pytest

import cudatut as ct
from cudatut.errors import CheckError
from cudatut.gpu import check, memory


@pytest.fixture
def shown(monkeypatch):
    results = []
    monkeypatch.setattr(check, "show", results.append)
    return results


def arrays(seed: int):
    """Random outputs and references, some of them equal, some close, with NaN and infinities at the same places."""
    rng = np.random.default_rng(seed)
    want = rng.standard_normal((5, 9)) * 10
    want.flat[rng.integers(0, want.size, 3)] = [np.nan, np.inf, -np.inf]
    return (want * (1 + rng.choice([0, 1e-7, 1e-3]) * rng.random(want.shape))).astype(
        "float32"
    ), want


@pytest.mark.parametrize("seed", range(12))
def test_pieces_make_no_difference(monkeypatch, shown, seed):
    got, want = arrays(seed)
    said = []
    for piece in (1 << 16, 7):
        monkeypatch.setattr(check, "_PIECE", piece)
        try:
            ct.check(got, want)
            said.append(shown[-1])
        except CheckError as error:
            said.append(str(error))
    assert said[0] == said[1]


def test_one_wrong_element_far_behind_is_found(shown):
    want = np.arange(1 << 18, dtype="float32")
    got = want.copy()
    got[200_001] = 0
    with pytest.raises(CheckError, match="1 of 262144 elements are wrong") as error:
        ct.check(got, want)
    assert "first at index 200001: got 0.0, expected 200001.0" in str(error.value)
    got[200_001] = np.nan
    with pytest.raises(CheckError, match="1 of them are NaN"):
        ct.check(got, want)
    assert not shown


def test_numbers_are_shown_plainly(shown):
    """A reader sees '0', not NumPy's 'np.int64(0)'."""
    with pytest.raises(CheckError) as error:
        ct.check(np.array([0, 2, 5]), np.array([1, 2, 3]), name="lines")
    assert "first at index 0: got 0, expected 1\n" in str(error.value)
    assert "last at index 2: got 5, expected 3" in str(error.value)
    with pytest.raises(CheckError, match="index 0: got nan, expected 0.1\n"):
        ct.check(np.array([np.nan], "float64"), np.array([0.1]), name="a")
    with pytest.raises(CheckError, match=r"index \(0, 1\): got 1.5, expected 0.3\n"):
        ct.check(np.array([[0, 1.5], [0, 1]], "float32"), np.array([[0, 0.3], [0, 0]], "float32"))


@pytest.mark.parametrize(
    ("got", "want", "message"),
    [
        (
            [1.0, 2.0],
            [1.0, 2.1],
            r"1 of 2 elements are wrong.*\n.*index 1: got .*2\.0.*expected .*2\.1",
        ),
        ([1.0, np.nan], [1.0, 2.0], "1 of them are NaN"),
        ([1.0, 2.0], [1.0, np.nan], "1 of 2"),
        ([np.inf], [-np.inf], "1 of 1"),
        ([1.0, 2.0], [[1.0, 2.0]], r"shape \(2,\), the reference \(1, 2\)"),
        ([1.0], [np.inf], "1 of 1"),
        ([np.inf, 1.0], [1e30, 1.0], "1 of 2"),
    ],
)
def test_check_finds_what_differs(got, want, message):
    with pytest.raises(ct.CheckError, match=message):
        ct.check(np.array(got, "float32"), np.array(want))


def test_what_is_wrong_without_being_nan_is_not_called_so():
    with pytest.raises(ct.CheckError) as caught:
        ct.check(np.array([1.0, 2.0], "float32"), np.array([1.0, 3.0]))
    assert "NaN" not in str(caught.value) and "last" not in str(caught.value)


@pytest.mark.filterwarnings("error")
def test_an_error_beside_a_reference_of_zero_has_no_relative_one(shown):
    ct.check(np.array([0.5, 4.0], "float32"), np.array([0.0, 4.0]), atol=1.0)
    assert (shown[0].max_abs_err, shown[0].max_rel_err) == (0.5, 0.0)


def test_check_compares_integers_exactly():
    ct.check(np.array([2**62 + 1]), np.array([2**62 + 1]))
    with pytest.raises(ct.CheckError):
        ct.check(np.array([2**62 + 1]), np.array([2**62]))


def test_check_passes_and_shows(capsys):
    ct.check(
        np.array([1.0, np.nan, np.inf], "float32"),
        np.array([1.0 + 1e-7, np.nan, np.inf]),
        name="three",
    )
    assert "check three: passed (3 elements" in capsys.readouterr().out


def test_check_tolerates_one_ulp_of_a_large_sum_but_no_more():
    want = np.array([1024.0])
    ct.check(np.array([np.nextafter(np.float32(1024), np.float32(2000))]), want)
    with pytest.raises(ct.CheckError):
        ct.check(np.array([1024.1], "float32"), want)


class OnTheGpu:
    """What `ct.check` asks of an output that lies on the GPU."""

    gpudata = 1

    def __init__(self, host):
        self.host = host

    def get(self):
        return self.host


def test_a_nan_is_right_where_one_is_expected_and_poison_is_not(monkeypatch, shown):
    monkeypatch.setattr(check.memory, "damaged_zones", list)
    got, want = np.array([1.0, np.nan], "float32"), np.array([1.0, np.nan])
    ct.check(OnTheGpu(got), want)
    got.view("uint8")[4:] = check.memory.POISON_BYTE
    assert np.isnan(got[1])
    with pytest.raises(CheckError, match="1 of them were never written"):
        ct.check(OnTheGpu(got), want)
    ct.check(got, want)  # on the host nothing is poisoned


@pytest.mark.filterwarnings("error")
def test_a_signalling_nan_passes_without_a_warning(shown):
    """As formats of 8 and 16 bits are decoded: every pattern of bits, those of NaN too."""
    bits = np.array([0x7F800001, 0x3F800000, 0xFF812345], dtype="uint32")
    other = bits.copy()
    other[1] += 1
    ct.check(bits.view("float32"), other.view("float32"), rtol=1e-6)


class OnGpu:
    """What `ct.check` sees of an array on the GPU: what it holds, and what it was poisoned with."""

    def __init__(self, held, poison=memory.POISON_BYTE):
        self.held, self.gpudata = held, 0
        self.base = object.__new__(memory.Allocation)
        self.base.poison = poison

    def get(self):
        return self.held


@pytest.fixture
def zones(monkeypatch):
    monkeypatch.setattr(memory, "damaged_zones", list)


def unwritten(dtype, n=100, byte=memory.POISON_BYTE):
    return np.frombuffer(bytes([byte]) * np.dtype(dtype).itemsize * n, dtype)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "uint16", "int32", "int64", "bool", "float32"])
def test_an_output_that_nobody_wrote_never_passes(shown, zones, dtype):
    """Whatever is expected, also if it is just what the poison is."""
    held = unwritten(dtype)
    for want in (held.copy(), np.zeros(100, dtype), np.ones(100, dtype)):
        with pytest.raises(CheckError):
            ct.check(OnGpu(held), want)
    assert not shown


def test_another_poison_tells_what_was_written(shown, zones):
    want = np.full(100, -1, "int32")
    with pytest.raises(CheckError, match=r"100 of 100 elements .* ct.poison\(out, 0x5a\)"):
        ct.check(OnGpu(want.copy()), want, name="levels")
    ct.check(OnGpu(want.copy(), poison=0x5A), want)
    half = want.copy()
    half[50:] = unwritten("int32", 50, 0x5A)
    with pytest.raises(CheckError, match="50 of them were never written"):
        ct.check(OnGpu(half, poison=0x5A), want)
    assert len(shown) == 1


def test_a_bool_of_a_poison_that_is_a_bool_may_have_been_written(shown, zones):
    want = np.arange(100) == 7
    ct.check(OnGpu(want.copy(), poison=1), want)
    assert shown[0].passed
    with pytest.raises(CheckError, match="1 of 100 elements are wrong"):
        ct.check(OnGpu(np.where(want, np.uint8(2), want).view("bool"), poison=2), want)


def test_a_tolerance_lets_no_unwritten_integers_pass(shown, zones):
    for off in (0, 1):
        with pytest.raises(CheckError, match="nobody can tell whether a kernel wrote them"):
            ct.check(OnGpu(unwritten("int32")), np.full(100, off - 1), atol=1.0)
    assert not shown


def test_a_few_values_that_happen_to_be_the_poison_pass(shown, zones):
    """As in a picture, whose bytes are of all values."""
    want = np.random.default_rng(3).integers(0, 256, 10_000).astype("uint8")
    assert (want == 255).any()
    ct.check(OnGpu(want.copy()), want)
    host = np.full(100, -1, "int32")
    ct.check(host, host.copy())  # on the host there is no poison
    sixteen = np.arange(240, 256, dtype="uint8")
    ct.check(OnGpu(sixteen.copy()), sixteen)  # one of sixteen may be it
    with pytest.raises(CheckError, match="1 of 15 elements .* nobody can tell"):
        ct.check(OnGpu(sixteen[1:].copy()), sixteen[1:])


def test_both_parts_of_complex_numbers_count(shown):
    want = np.array([1 + 9j, 2 - 1j])
    for dtype in ("complex64", "complex128"):
        got = want.astype(dtype)
        ct.check(got, want)
        for wrong in (1j, 1):
            with pytest.raises(CheckError, match="1 of 4 elements are wrong"):
                ct.check(got + np.array([wrong, 0], dtype), want)
    with pytest.raises(CheckError, match="1 of 4"):
        ct.check(np.array([1.0, 2.0]), np.array([1, 2 + 1j]))
    assert [one.n for one in shown] == [4, 4]


def test_what_is_no_number_is_refused(shown):
    words = np.array(["a", "b"])
    with pytest.raises(CheckError, match="it compares numbers, not elements of <U1 and <U1"):
        ct.check(words, words)


def test_the_two_errors_are_told_apart(shown):
    """The largest difference, and the largest share of what it should be: they need not be one element's."""
    want = np.array([1000.0, 2.0, 0.5, 0.0])
    ct.check(np.array([1000.5, 2.0, 0.501, 0.0]), want, rtol=1e-2)
    (result,) = shown
    assert result.max_abs_err == pytest.approx(0.5)
    assert result.max_rel_err == pytest.approx(0.002)
    assert (result.n, result.passed, result.rtol) == (4, True, 1e-2)
    assert result.atol == pytest.approx(0.1 * 1e-2 * 1000)


def test_what_is_equal_has_no_error(shown):
    ct.check(np.array([1.0, np.inf, -2.5]), np.array([1.0, np.inf, -2.5]))
    ct.check(np.array([3, 4]), np.array([3, 4]))
    assert [(one.max_abs_err, one.max_rel_err, one.passed) for one in shown] == [
        (0.0, 0.0, True)
    ] * 2


@pytest.mark.parametrize(
    ("dtype", "rtol"), [("float16", 2e-3), ("float32", 1e-5), ("float64", 1e-12)]
)
def test_each_type_has_its_tolerance(shown, dtype, rtol):
    """rtol of each element, and a tenth of it of the largest."""
    want = np.array([1.0, 0.0])
    ct.check(np.array([1.0, 0.0], dtype), want)
    assert shown[0].rtol == rtol and shown[0].atol == pytest.approx(0.1 * rtol)
    ct.check(np.array([1 + rtol, 0.09 * rtol]), want, rtol=rtol)
    for wrong in ([1 + 1.2 * rtol, 0.0], [1.0, 0.11 * rtol]):
        with pytest.raises(CheckError):
            ct.check(np.array(wrong), want, rtol=rtol)
    ct.check(np.array([1, 0], "uint8"), np.array([1, 0]))
    assert (shown[-1].rtol, shown[-1].atol) == (0.0, 0.0)


def test_lengths_that_find_wrong_bounds(monkeypatch):
    """One, one less and one more than a warp, and a long one that is no multiple of anything a kernel is made of."""
    one, less, more, long = check.RAGGED
    assert (one, less, more) == (1, 31, 33)
    assert long % 2 and long % 3 and long % 5 and long > 10_000


def test_under_a_tool_the_long_length_is_shorter_and_no_rounder(monkeypatch):
    monkeypatch.setenv("CUDATUT_TOOL", "memcheck")
    again = importlib.util.module_from_spec(check.__spec__)
    check.__spec__.loader.exec_module(again)
    *short, long = again.RAGGED
    assert short == [1, 31, 33] and 10_000 < long < check.RAGGED[-1]
    assert long % 2 and long % 3 and long % 5


@pytest.mark.parametrize(
    ("got", "want", "guard", "brief"),
    [
        ([1, 2, 3], [1, 2, 4], "values", "1 of 3 elements are wrong; element 2 is the first: got 3, expected 4"),
        ([1, 2], [1], "shape", r"the output has shape \(2,\), the reference \(1,\)"),
        ([1.0, np.nan], [1.0, 2.0], "nan", "element 1 is the first: got nan, expected 2.0"),
    ],
)  # fmt: skip
def test_an_error_says_in_one_line_what_caught_it(got, want, guard, brief):
    with pytest.raises(CheckError) as caught:
        ct.check(np.array(got), np.array(want), name="sum")
    assert caught.value.guard == guard
    assert re.fullmatch(f"check sum: (1 of 2 elements are wrong; )?{brief}", caught.value.brief)


def test_an_error_of_zones_names_two_places_in_one_line():
    error = check.outside(["a lies there", "b too", "c besides"], "sum")
    assert error.guard == "zone"
    assert error.brief == "check sum: a kernel wrote outside its arrays: a lies there; b too"
    assert str(error).splitlines()[1:] == ["  a lies there", "  b too", "  c besides"]
    assert check.outside(["a"]).brief == "a kernel wrote outside its arrays: a"


def test_one_number_may_be_expected_of_one_element(shown):
    """Whatever the shape of the output; of several elements each has its own."""
    ct.check(np.array([3.0]), 3.0)
    ct.check(np.array([[7]]), 7)
    assert [one.n for one in shown] == [1, 1]
    with pytest.raises(CheckError, match="1 of 1 elements are wrong"):
        ct.check(np.array([3.0]), 4.0)
    with pytest.raises(CheckError, match=r"has shape \(2,\), the reference \(\)"):
        ct.check(np.array([3.0, 3.0]), 3.0)
