"""Strict reading: text of a recording that a page, a path or a command would be made of is what it should be, or refused."""

import copy
import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cudatut import catalog, instrument, recording
from cudatut.errors import CudatutError
from cudatut.results import MIME

NAME = "start/add"
HASH = "a" * 64
INSTRUMENT = {
    "numbers": {"timing": instrument.ledger()["numbers"]["timing"]},
    "files": {"gpu/bench.py": instrument.ledger()["files"]["gpu/bench.py"]["meaning"]},
}
# Text that would become markup, a path, a command or a second line.
EVIL = [
    "<script>x</script>",
    '"><img onerror=x>',
    "../../x",
    "/etc/x",
    "a\nb",
    "",
    " ",
    "a b; rm",
]


@pytest.fixture
def good(book):
    """A whole, good, fresh recording as JSON, with all that a newer one has."""
    book.example(NAME)
    notebook = book.notebook(NAME)
    notebook["metadata"]["cudatut"] |= {
        "meanings": {f"{NAME}.py": HASH},
        "kernels": [
            {"file": "start/add.cu", "name": "add<4, true>", "defines": ["N=1"], "options": ["-O3"],
             "arch": "sm_90a", "code": HASH},
            {"text": HASH, "includes": [], "name": "k", "defines": [], "options": [], "arch": "sm_90",
             "code": HASH},
        ],
        "instrument": copy.deepcopy(INSTRUMENT),
        "rivals": {"cuBLAS": "13.1.0.3"},
        "launched": {"cuBLAS": ["void gemm<float>(float*)"]},
        "restamped": [
            {"from": "a" * 40, "to": "b" * 40, "measured": HASH, "files": {
                "start/old.cu": {"ground": "moved", "was": HASH, "now": HASH, "as": "start/add.cu"},
                "start/gone.cuh": {"ground": "code", "was": HASH}}}
        ],
    }  # fmt: skip
    return notebook


def read(notebook, name=NAME):
    path = recording.own_path("NVIDIA Test", name)
    raw = notebook if isinstance(notebook, bytes) else json.dumps(notebook).encode()
    return recording.parse(name, path, raw)


def refused(notebook, *says):
    with pytest.raises(recording.DamagedRecordingError) as caught:
        read(notebook)
    message = str(caught.value)
    for part in (
        f"recordings/nvidia-test/{NAME}.ipynb is no recording",
        f"cudatut record {NAME}",
        *says,
    ):
        assert part in message
    assert message.isprintable(), "one line, without what a terminal would obey"


def test_a_good_one(good, book):
    assert read(good).metadata == good["metadata"]["cudatut"]
    book.recorded(NAME, good, agree=False)
    assert recording.require_good(NAME)


def put(at, value):
    """Set a value inside the metadata, by the way that leads there."""

    def edit(metadata):
        for step in at[:-1]:
            metadata = metadata[step]
        metadata[at[-1]] = value

    return edit


def key(at, value):
    """The same with the name of a value."""

    def edit(metadata):
        for step in at:
            metadata = metadata[step]
        metadata[value] = metadata.pop(next(iter(metadata)))

    return edit


TEXTS = [
    ("title", "en"), ("title", "zh"), ("requires",), ("commit",), ("recorded_at",),
    ("sources", f"{NAME}.py"), ("gpu", "name"), ("gpu", "compute_capability"), ("gpu", "driver"),
    ("toolchain", "cuda"), ("digest",), ("meanings", f"{NAME}.py"), ("kernels", 0, "file"),
    ("kernels", 0, "arch"), ("kernels", 0, "code"), ("kernels", 1, "code"),
    ("instrument", "files", "gpu/bench.py"), ("restamped", 0, "from"), ("restamped", 0, "to"),
    ("restamped", 0, "files", "start/old.cu", "was"), ("restamped", 0, "files", "start/old.cu", "now"),
    ("restamped", 0, "files", "start/old.cu", "as"),
]  # fmt: skip
WORDS = {
    ("title", "en"),
    ("title", "zh"),
    ("gpu", "name"),
}  # of which any printable text may be one


# A page escapes these, and they have to be those of the header; so any word on one line is one.
WRONG = [
    (at, evil)
    for at in TEXTS
    for evil in EVIL
    if at not in WORDS or not evil.strip() or "\n" in evil
]


@pytest.mark.parametrize(("at", "evil"), WRONG)
def test_text_that_is_none(good, at, evil):
    put(at, evil)(good["metadata"]["cudatut"])
    refused(good, at[0])


NAMES = [
    ("sources",),
    ("meanings",),
    ("instrument", "files"),
    ("toolchain",),
    ("restamped", 0, "files"),
]


@pytest.mark.parametrize("at", NAMES, ids=lambda at: str(at[0]))
@pytest.mark.parametrize("evil", [*EVIL, ".hidden/x.py", "a/.x", "a/../b", "a//b", "a\\b", "a/"])
def test_names_that_are_none(good, at, evil):
    if at == ("toolchain",) and evil == ".hidden/x.py":
        evil = "a/b"
    key(at, evil)(good["metadata"]["cudatut"])
    refused(good, at[0])


@pytest.mark.parametrize(
    ("at", "value"),
    [
        (("schema",), True),
        (("schema",), 1.0),
        (("name",), "start/other"),
        (("title",), {"en": "a"}),
        (("title",), {"en": "a", "zh": "b", "fr": "c"}),
        (("title",), ["en", "zh"]),
        (("requires",), "sm_9０"),  # a digit, but none of ASCII
        (("requires",), "sm_90b"),
        (("sources",), []),
        (("sources", f"{NAME}.py"), None),
        (("sources", "start/x.cu"), 3),
        (("meanings", "start/x.cu"), HASH),
        (("gpu",), None),
        (("gpu", "memory_bytes"), True),
        (("gpu", "memory_bytes"), 0),
        (("gpu", "sm_count"), -1),
        (("gpu", "sm_count"), 10**400),
        (("gpu", "sm_count"), 132.0),
        (("toolchain",), None),
        (("toolchain", "cuda"), 13),
        (("toolchain", "cuda"), ["13"]),
        (("recorded_at",), "2026-99-99T99:99:99+00:00"),
        (("recorded_at",), "2026-02-30T00:00:00+00:00"),
        (("recorded_at",), "2026-11-20T12:00:00+01:00"),
        (("recorded_at",), 1),
        (("commit",), "HEAD"),
        (("commit",), "-dirty"),
        (("commit",), "abc123"),
        (("duration_s",), -1.0),
        (("duration_s",), True),
        (("duration_s",), float("inf")),
        (("duration_s",), float("nan")),
        (("duration_s",), 10**400),
        (("sanitizers",), {}),
        (("sanitizers", 0, "tool"), "valgrind"),
        (("sanitizers", 0, "kind"), "check"),
        (("sanitizers", 0, "errors"), 1.5),
        (("slim",), True),
        (("digest",), "0"),
        (("kernels",), {}),
        (("kernels", 0, "name"), ""),
        (("kernels", 0, "defines"), "N=1"),
        (("instrument",), {}),
        (("instrument", "numbers"), {"timing": 0}),
        (("instrument", "numbers"), {"guessing": 1}),
        (("rivals",), {"cuBLAS": 13}),
        (("launched",), {"cuBLAS": "k"}),
        (("restamped",), [{}]),
    ],
)
def test_values_that_are_none(good, at, value):
    put(at, value)(good["metadata"]["cudatut"])
    refused(good)


def test_what_nobody_knows_yet_is_left_alone(good):
    good["metadata"]["cudatut"]["later"] = {"anything": [1, None]}
    assert read(good).metadata["later"] == {"anything": [1, None]}


@pytest.mark.parametrize(
    "edit",
    [
        lambda n: n["cells"][3].update(id="<b>"),
        lambda n: n["cells"][3].update(id='x" onclick="y'),
        lambda n: n["cells"][3].update(id="A"),
        lambda n: n["cells"][3].update(id=3),
        lambda n: n["cells"][3].update(id="a" * 65),
        lambda n: n["cells"][3].update(source={"a": "b"}),
        lambda n: n["cells"][3].update(source=["a", 3]),
        lambda n: n["cells"][3].update(cell_type="raw"),
        lambda n: n["cells"][2]["outputs"][0].update(name="<b>"),
        lambda n: n["cells"][2]["outputs"][0].update(text={"a": 1}),
        lambda n: n["cells"][2].update(outputs={}),
        lambda n: n["cells"][2].update(outputs=[[]]),
        lambda n: n.update(cells={}),
        lambda n: n.update(metadata={"cudatut": []}),
        lambda n: n.update(metadata=None),
    ],
)
def test_cells_that_are_none(good, edit):
    edit(good)
    refused(good)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (
            lambda raw: raw.replace(b'"schema": 1', b'"schema": 1, "schema": 1'),
            "says 'schema' twice",
        ),
        (lambda raw: b"[" * 100_000, "nested too deeply"),
        (lambda raw: raw.replace(b"1.5", b"1" * 5000), "no recording"),
        (lambda raw: raw.replace(b"1.5", b"1e999"), "duration_s is inf"),
        (lambda raw: raw.replace(b"1.5", b"NaN"), "duration_s is nan"),
        (lambda raw: b"\xef\xbb\xbf" + raw, "not JSON"),
        (lambda raw: raw.decode().encode("utf-16"), "not JSON"),
        (lambda raw: raw.replace(b"hello", b"\\uD83D"), "half of a character"),
    ],
)
def test_json_that_is_odd(good, change, says):
    refused(change(json.dumps(good).encode()), says)


def test_a_character_in_two_halves_is_one(good):
    raw = json.dumps(good).encode().replace(b"hello", b"\\uD83D\\uDE00")
    assert "\N{GRINNING FACE}" in read(raw).cell("setup").outputs[0]["text"]


@pytest.mark.parametrize("number", [10**400, -(10**400), 2**64, float("inf"), float("nan")])
def test_a_result_of_odd_numbers_is_not_good(good, book, number):
    check = next(o for o in good["cells"][3]["outputs"])["data"][MIME]
    check["n"] = number
    book.recorded(NAME, good, agree=False)
    with pytest.raises(recording.UnfitRecordingError, match="check add: n is"):
        recording.require_good(NAME)


# --- fuzzing ------------------------------------------------------------------------------------------

ODD = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8), st.just(10**400), st.just(-(10**400)),
    st.sampled_from([*EVIL, "\ud800"]), st.just([]), st.just({}), st.just([None]), st.just({"en": 1}), st.just([[]]),
)  # fmt: skip


def places(value, at=()):
    """The ways to all values inside a JSON value."""
    inside = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    for step, one in inside:
        yield (*at, step)
        yield from places(one, (*at, step))


@settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_no_damage_ends_in_a_traceback(data, good, book):
    """Whatever stands in whatever place: it is good, or refused in one line that names file and reason."""
    notebook = copy.deepcopy(good)
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.sampled_from(list(places(notebook))))
        inside = notebook
        for step in at[:-1]:
            inside = inside[step]
        if data.draw(st.booleans()):
            inside[at[-1]] = copy.deepcopy(data.draw(ODD))
        else:
            del inside[at[-1]]
    raw = json.dumps(notebook).encode()
    try:
        made = read(raw)
        made.metadata["digest"] = made.digest()
        recording.good(made)
        made.rewritten(), made.outdated(), made.shows_lines(), made.file
    except CudatutError as error:
        assert f"recordings/nvidia-test/{NAME}.ipynb" in str(
            error
        ) and f"cudatut record {NAME}" in str(error)
        assert "\n" not in str(error)


def test_the_real_ones_are_read():
    names = [example.name for example in catalog.examples()]
    assert len(names) > 150
    for name in names:
        assert recording.load(name).name == name
