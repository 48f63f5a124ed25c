"""What an array must be before a launch: `ct.operands` against NumPy's own answers, on random views."""

import itertools
import math
from types import SimpleNamespace

import numpy as np
import pytest
from on_gpu import OnGpu, Told

import cudatut as ct
from cudatut.gpu import operands


def take(array, *args, how="read", **options):
    return getattr(ct.operands("test"), how)("x", OnGpu(array), *args, **options)


def random_view(draw, buffer):
    """A view of one to three axes, with steps, of a buffer of float32."""
    axes = int(draw.integers(1, 4))
    shape = [int(draw.integers(1, 6)) for _ in range(axes)]
    start = int(draw.integers(0, 40))
    block = buffer[start : start + math.prod(shape)].reshape(shape)
    steps = tuple(slice(None, None, int(draw.choice([1, 1, 1, 2]))) for _ in range(axes))
    view = block[steps]
    return view.T if draw.integers(0, 8) == 0 else view


def test_dense_is_what_numpy_calls_c_contiguous():
    draw, buffer = np.random.default_rng(5), np.zeros(400, "float32")
    seen = set()
    for _ in range(600):
        view = random_view(draw, buffer)
        seen.add(view.flags.c_contiguous)
        if view.flags.c_contiguous:
            found = take(view, "float32")
            assert found.count * found.width == view.size
            assert found.shape == view.shape
        else:
            with pytest.raises(ValueError, match="not C-contiguous"):
                take(view, "float32")
    assert seen == {True, False}


def addresses_of_rows(found):
    return [
        int(found.address) + (row * found.stride + column) * found.size
        for row in range(found.count)
        for column in range(found.width)
    ]


def addresses(view):
    first = view.__array_interface__["data"][0]
    return [
        first + sum(i * s for i, s in zip(index, view.strides))
        for index in itertools.product(*map(range, view.shape))
    ]


def test_rows_are_where_the_elements_are_or_refused_where_they_lie_otherwise():
    draw, buffer, kinds = np.random.default_rng(6), np.zeros(400, "float32"), set()
    for _ in range(600):
        view = random_view(draw, buffer)
        rows = int(draw.integers(1, view.ndim + 1))
        try:
            found = take(view, "float32", rows=rows)
        except ValueError:
            kinds.add("refused")
            where = np.array(addresses(view)).reshape(math.prod(view.shape[:rows]), -1)
            inside = np.diff(where, axis=1)
            apart = np.diff(where[:, 0])
            even = (inside == 4).all() and len(set(apart.tolist())) <= 1
            assert not even
        else:
            kinds.add("strided" if found.stride != found.width else "dense")
            assert addresses_of_rows(found) == addresses(view)
    assert kinds == {"refused", "strided", "dense"}


def test_overlap_is_what_numpy_says_for_rows_at_one_distance_and_never_missed_for_others():
    draw, buffer, found = np.random.default_rng(7), np.zeros((12, 20), "float32"), set()
    for _ in range(3000):
        parts = []
        for _ in range(2):
            (r0, r1), (c0, c1) = (sorted(draw.integers(0, n + 1, 2)) for n in buffer.shape)
            parts.append(buffer[r0:r1, c0:c1])
        one, other = (take(part, "float32", rows=1) for part in parts)
        shared = np.shares_memory(*parts)
        found.add(shared)
        assert one.overlaps(other) == other.overlaps(one) == shared
    assert found == {True, False}


def test_a_row_between_the_columns_of_others_is_none_of_theirs():
    matrix = np.zeros((4, 16), "float32")
    left, row = take(matrix[:, :8], "float32", rows=1), take(matrix[1, 8:], "float32")
    assert not left.overlaps(row) and not row.overlaps(left)
    assert left.overlaps(take(matrix[1, 7:9], "float32"))


def test_what_is_written_shares_memory_with_nothing():
    x = np.zeros((8, 8), "float32")
    for first, second in (("read", "write"), ("write", "read"), ("write", "write")):
        arrays = ct.operands("norm")
        getattr(arrays, first)("x", OnGpu(x), "float32")
        with pytest.raises(
            ValueError, match="norm: y shares memory with x, and [xy] is written; copy one"
        ):
            getattr(arrays, second)("y", OnGpu(x), "float32")
    arrays = ct.operands("norm")
    arrays.read("x", OnGpu(x), "float32")
    arrays.read("y", OnGpu(x), "float32")
    arrays.write("out", OnGpu(np.zeros((8, 8), "float32")), "float32")


@pytest.mark.parametrize(("first", "shares"), [(32, True), (33, False)])
def test_vectors_may_touch_and_not_share_an_element(first, shares):
    x, arrays = np.zeros(64, "float32"), ct.operands("norm")
    arrays.read("x", OnGpu(x[:33]), "float32")
    if shares:
        with pytest.raises(ValueError, match="out shares memory with x"):
            arrays.write("out", OnGpu(x[first:]), "float32")
    else:
        arrays.write("out", OnGpu(x[first:]), "float32")


def test_over_allows_the_array_itself_and_nothing_that_lies_a_row_further():
    x = np.zeros((8, 8), "float32")
    arrays = ct.operands("norm")
    arrays.read("x", OnGpu(x[:7]), "float32")
    with pytest.raises(ValueError, match="and out is not x itself"):
        arrays.write("out", OnGpu(x[1:]), "float32", over="x")
    with pytest.raises(ValueError, match="and out is not x itself"):
        arrays.write("out", OnGpu(x[:7].view("int32")), "int32", over="x")
    arrays.write("out", OnGpu(x[:7]), "float32", over="x")


def test_extents_and_rows_may_be_as_long_as_they_are_wanted():
    host = np.zeros((2, 3), "uint16")
    found = take(host, "uint16", most=3, rows=1, begins=3)
    assert (found.count, found.width) == (2, 3)
    assert (take(host, "uint16").count, take(np.array(1.0), "float64").count) == (2, 1)
    longest = {"shape": (2**31 - 1,), "typestr": "|u1", "data": (0, False)}
    for more in (0, 1):
        longest["shape"] = (2**31 - 1 + more,)
        array = SimpleNamespace(__cuda_array_interface__=longest)
        if more:
            with pytest.raises(ValueError, match=r"an extent goes up to 2147483647"):
                ct.operands("test").read("x", array, "uint8")
        else:
            assert ct.operands("test").read("x", array, "uint8").width == 2**31 - 1


@pytest.mark.parametrize(
    ("given", "options", "message"),
    [
        (np.zeros((2, 3), "int16"), {}, r"test: x is int16, and must be uint16 or float32; bfl"),
        (np.zeros((2, 3), "uint16"), {"shape": (2, 4)}, r"x is \[2, 3\], and must be \[2, 4\]"),
        (np.zeros((2, 3), "uint16"), {"shape": (None, 4)}, r"and must be \[any, 4\]"),
        (np.zeros(6, "uint16"), {"shape": (2, 3)}, r"x is \[6\], and must be \[2, 3\]"),
        (np.zeros((2, 3), "uint16"), {"begins": 4, "rows": 1}, "must begin with 4 elements"),
        (np.zeros((2, 3), "uint16"), {"most": 2}, "goes up to 2"),
        (np.zeros((4, 16), "uint16")[:, :12], {"rows": 1, "align": 64}, "no multiple of 64 bytes"),
    ],
)
def test_messages_say_what_is_wrong_and_what_is_wanted(given, options, message):
    with pytest.raises((TypeError, ValueError), match=message):
        take(given, ("uint16", "float32"), **options)


def test_an_address_between_two_multiples_is_refused():
    x = np.zeros(64, "uint8")
    shift = -x.__array_interface__["data"][0] % 16
    for more in (0, 2):
        arrays = ct.operands("test")
        array = OnGpu(x[:16], shift + more)
        if more:
            with pytest.raises(ValueError, match="not aligned: it begins at no multiple of 16"):
                arrays.read("x", array, "uint8", align=16)
        else:
            arrays.read("x", array, "uint8", align=16)


def test_elements_lie_at_multiples_of_their_size():
    x = np.zeros(65, "uint8")
    start = -x.__array_interface__["data"][0] % 8
    for dtype in ("uint16", "int32", "uint64"):
        arrays, host = ct.operands("test"), x[start : start + 32].view(dtype)
        arrays.read("x", OnGpu(host), dtype)
        with pytest.raises(ValueError, match=f"no multiple of {host.itemsize} bytes"):
            arrays.read("x", OnGpu(host, host.itemsize // 2), dtype)


def test_what_is_known_of_a_shape_is_not_mistaken_for_the_array():
    """Layouts are kept from launch to launch: addresses and owners are not, and refusals are not either."""
    one, other = np.zeros((4, 8), "uint16"), np.ones((4, 8), "uint16")
    for host in (one, other, one):
        array = OnGpu(host)
        found = ct.operands("test").read("x", array, ["uint16", "float32"], [None, 8])
        assert found.owner is array and found.address == host.__array_interface__["data"][0]
        with pytest.raises(ValueError, match=r"must be \[any, 7\]"):
            take(host, "uint16", (None, 7))
        with pytest.raises(TypeError, match="is uint16"):
            take(host, "float32")
        assert take(host[:, :6], "uint16", rows=1).stride == 8


def test_what_is_no_array_on_a_gpu_is_refused_with_the_cure():
    arrays = ct.operands("test")
    with pytest.raises(TypeError, match="x is a host array; copy it with ct.to_device"):
        arrays.read("x", np.zeros(3), "float64")
    for wrong in (None, 3, [1, 2], "x"):
        with pytest.raises(TypeError, match="must be an array on the GPU"):
            arrays.read("x", wrong, "float64")


def test_rows_of_an_output_do_not_lie_in_one_another():
    base = np.zeros(64, "float32")
    rows = np.lib.stride_tricks.as_strided(base, (4, 8), (16, 4))
    take(rows, "float32", rows=1)
    with pytest.raises(ValueError, match="rows of x lie in one another"):
        take(rows, "float32", rows=1, how="write")
    broadcast = np.broadcast_to(np.zeros(8, "float32"), (4, 8))
    assert take(broadcast, "float32", rows=1).stride == 0
    with pytest.raises(ValueError, match="must be a number of elements"):
        take(rows[::-1], "float32", rows=1)
    with pytest.raises(ValueError, match="must be a number of elements"):
        take(np.zeros((4, 1), "uint8")[::-1], "uint8", rows=1)


def test_one_row_is_as_far_from_the_next_as_is_convenient():
    """There is no next one: no distance is too small, or odd."""
    host = np.zeros(8, "float32")
    for shift in (0, 4):
        row = take(host, "float32", how="write", lies=(1, 8, 3))
        assert row._replace(address=np.uint64(shift)).aligned(16) == (shift == 0)
        assert row._replace(address=np.uint64(shift + 32)).aligned(16) == (shift == 0)
    wide = np.zeros(64, "float32")
    start = -wide.__array_interface__["data"][0] % 16 // 4
    rows = wide[start : start + 30].reshape(3, 10)[:, :8]
    assert take(rows[:1], "float32", rows=1, align=16).stride == 10
    with pytest.raises(ValueError, match="rows begin at no multiple of 16 bytes"):
        take(rows, "float32", rows=1, align=16)
    for lies, aligned in (((2, 3, 3), False), ((2, 3, 4), True)):
        two = take(host, "float32", lies=lies)
        assert two._replace(address=np.uint64(32)).aligned(16) == aligned
    # It may say anything of an axis of one: a distance that can be is taken where rows are asked for.
    for says, rows, stride in ((40, 1, 10), (40, 0, 8), (0, 1, 8), (32, 1, 8)):
        one = np.lib.stride_tricks.as_strided(wide, (1, 8), (says, 4))
        assert take(one, "float32", rows=rows).stride == stride


@pytest.mark.parametrize(
    ("driver", "count", "several"), [(None, 2, False), ("libcuda", 1, False), ("libcuda", 2, True)]
)
def test_where_an_array_lies_is_asked_where_there_are_several_gpus(
    monkeypatch, driver, count, several
):
    monkeypatch.setattr(operands, "installed_driver", lambda: driver)
    monkeypatch.setattr(operands, "gpu_count", lambda: count)
    assert operands._several_gpus.__wrapped__() is several


@pytest.mark.parametrize(
    ("there", "here", "statuses", "refused"),
    [
        (1, 1, (0, 0), False),
        (1, 0, (0, 0), True),
        (0, 1, (0, 0), True),
        # What the driver does not know is left alone: an address of the host's, a thread without a context.
        (1, 0, (1, 0), False),
        (1, 0, (0, 201), False),
    ],
)
def test_an_array_of_another_gpu_is_refused(monkeypatch, there, here, statuses, refused):
    def pointer(value, which, address):
        assert (which, address.value) == (9, 4096)  # CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
        value._obj.value = there
        return statuses[0]

    def context(value):
        value._obj.value = here
        return statuses[1]

    driver = SimpleNamespace(cuPointerGetAttribute=pointer, cuCtxGetDevice=context)
    monkeypatch.setattr(operands, "installed_driver", lambda: driver)
    monkeypatch.setattr(operands, "_several_gpus", lambda: True)
    arrays, array = ct.operands("norm"), Told("float32", 8, at=4096)
    if refused:
        with pytest.raises(ValueError, match=rf"norm: x .*GPU {there}.*GPU {here}"):
            arrays.read("x", array, "float32")
    else:
        arrays.read("x", array, "float32")
        arrays.read("none", Told("float32", 0, at=0), "float32")


def test_arrays_without_elements_are_taken():
    for shape in ((0, 8), (3, 0), (0,)):
        found = take(np.zeros(shape, "float32"), "float32", align=64, rows=1)
        assert found.count * found.width == 0


def test_rows_may_be_meant_of_an_array_of_any_shape():
    """As a library takes a matrix: where it begins, and how far its rows are apart."""
    flat = np.zeros(3 * 44 + 40, "float32")
    found = take(flat, "float32", lies=(4, 40, 44))
    assert (found.count, found.width, found.stride) == (4, 40, 44) and found.shape == flat.shape
    for lies in ((5, 40, 44), (4, 41, 44), (4, 40, 45)):
        with pytest.raises(ValueError, match=r"has 172 elements, and must have room for . rows of"):
            take(flat, "float32", lies=lies)
    with pytest.raises(ValueError, match="room for 2 rows of 40, 39 apart"):  # in one another
        take(flat, "float32", lies=(2, 40, 39))
    with pytest.raises(ValueError, match="goes up to 30"):
        take(flat, "float32", lies=(4, 40, 44), most=30)
    take(flat, "float32", lies=(0, 40, 1))
    with pytest.raises(ValueError, match="an extent is 0 or more"):
        take(flat, "float32", lies=(1, -2, 0))
    two = ct.operands("parts of one matrix")
    two.read("left", OnGpu(flat), "float32", lies=(4, 20, 44))
    two.write("right", OnGpu(flat[20:]), "float32", lies=(4, 20, 44))
    with pytest.raises(ValueError, match="shares memory with left"):
        two.write("right", OnGpu(flat[19:]), "float32", lies=(4, 20, 44))


def test_a_struct_begins_where_its_fields_can():
    points = np.zeros(5, [("x", "f4"), ("y", "f4"), ("z", "f4")])
    for first in range(3):
        assert take(points[first:], None).size == 12
