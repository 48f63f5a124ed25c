"""Ladders and a reader's own kernel, as far as they go without a GPU."""

import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import ClassVar

import pytest

from cudatut import catalog, cli, paths
from cudatut.fingerprint import ran
from cudatut.gpu import ladder, trial
from cudatut.results import Benchmark, Profile, Row

RUNG = "// @rung kernel=k block=256 blocks=64,128 per_thread=2\n__global__ void k() {}\n"


def test_a_rung_is_read_from_its_file(tmp_path):
    (tmp_path / "mine.cu").write_text(RUNG)
    rung = ladder.read_rung(tmp_path / "mine.cu")
    assert (rung.name, rung.kernel) == ("mine", "k")
    assert rung.number("block") == 256 and rung.number("vectors", 4) == 4
    assert rung.numbers("blocks") == (64, 128) and rung.numbers("others") == ()


def test_a_rung_names_an_instance_of_its_template(tmp_path, monkeypatch):
    (tmp_path / "mine.cu").write_text("// @rung kernel=k<128,8> block=256\n")
    rung = ladder.read_rung(tmp_path / "mine.cu")
    monkeypatch.setattr(ladder, "Kernel", lambda path, name, defines: (name, defines))
    assert rung.kernel == "k<128,8>" and rung.number("block") == 256
    assert rung.compile(N=3) == ("k<128,8>", {"N": 3})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("__global__ void k() {}", "no line `// @rung"),
        ("// @rung block=256\n", "must name its kernel"),
    ],
)
def test_a_file_that_is_no_rung_says_what_it_lacks(tmp_path, text, message):
    (tmp_path / "mine.cu").write_text(text)
    with pytest.raises(ladder.RungError, match=message):
        ladder.read_rung(tmp_path / "mine.cu")


def test_an_option_that_is_no_number(tmp_path):
    (tmp_path / "mine.cu").write_text("// @rung kernel=k block=many\n")
    rung = ladder.read_rung(tmp_path / "mine.cu")
    with pytest.raises(ladder.RungError, match="block=NUMBER, but says block=many"):
        rung.number("block")
    with pytest.raises(ladder.RungError, match="vectors=NUMBER"):
        rung.number("vectors")


def test_a_list_with_what_is_no_number(tmp_path):
    (tmp_path / "mine.cu").write_text("// @rung kernel=k blocks=64,x\n")
    rung = ladder.read_rung(tmp_path / "mine.cu")
    with pytest.raises(ladder.RungError, match="blocks=NUMBER,NUMBER, but says blocks=64,x"):
        rung.numbers("blocks")
    assert rung.numbers("none") == ()


def test_the_ladder_of_sums_is_declared_and_every_rung_is_whole():
    sums = ladder.load_ladder("reduction")
    assert sums.names[0] == "naive" and {"one_launch", "limit", "flags"} <= set(sums.names)
    for name in sums.names:
        rung = sums[name]
        assert rung.kernel == f"reduce_{name}" and rung.number("block") in rung.numbers("blocks")
        # An `@rung` line that a formatter has broken in two loses its last words.
        source = paths.resolve_source(rung.path).read_text(encoding="utf-8")
        assert (rung.options.get("launches") == "one") == ("T* __restrict__ partials," in source)
    assert [rung.name for rung in sums.upto("sequential")] == ["naive", "interleaved", "sequential"]
    with pytest.raises(ladder.RungError, match="no rung 'nothing'"):
        sums["nothing"]


def test_the_ladder_of_general_products_is_declared_and_every_rung_is_whole():
    gemms = ladder.load_ladder("gemm")
    assert gemms["tma"].options["requires"] == "sm_90"
    assert "requires" not in gemms["vectorized"].options
    assert gemms.names[:2] == ("block_tile_2d", "vectorized") and "tma" in gemms.names
    for name in gemms.names:
        rung = gemms[name]
        if name != "final":  # whose tile is in its name, and which sgemm.py launches
            assert rung.number("block") and re.fullmatch(r"\d+x\d+", rung.options["tile"])


def test_a_part_builds_on_anothers_ladder():
    from cudatut.book.basics.ladder.ladder import Matmul
    from cudatut.book.gemm.ladder.ladder import LADDER, earlier_rungs

    assert issubclass(LADDER.problem, Matmul)
    assert [rung.name for rung in earlier_rungs()] == ["naive_columns", "tiled", "thread_tile"]


def test_an_unknown_ladder_names_the_known():
    with pytest.raises(ladder.RungError, match="there are: gemm, matmul, reduction"):
        ladder.load_ladder("nothing")


def test_the_ladder_of_products_has_a_name_and_trials():
    """`try matmul`; by the part's name too, and on sizes that no tile divides."""
    matmuls = ladder.load_ladder("matmul")
    assert matmuls is ladder.load_ladder("basics") and matmuls.part == "basics"
    assert matmuls.names[0] == "naive_rows" and matmuls.contest
    sizes = [(trial["m"], trial["n"], trial["k"]) for trial in matmuls.trials]
    assert (1, 1, 1) in sizes and any(0 in size for size in sizes)
    assert sum(1 for size in sizes if all(extent % 32 for extent in size)) >= 4
    assert any(not trial.get("integers") for trial in matmuls.trials)


@pytest.mark.parametrize(
    "name", ["matmul", "reduction", "gemm", "tensor", "transpose", "scan", "sort"]
)
def test_every_ladder_has_trials_and_a_contest(name):
    found = ladder.load_ladder(name)
    assert len(found.trials) >= 5 and found.contest


def test_the_forms_of_a_readers_file(tmp_path, monkeypatch):
    (tmp_path / "mine.cu").write_bytes(b"// A kernel of mine.\r\n  //@rung  kernel=k block=256\r\n")
    rung = trial._readers_rung("gemm", str(tmp_path / "mine.cu"))
    assert (rung.kernel, rung.options) == ("k", {"block": "256"})
    # It may include what the part's own files include, wherever it lies.
    asked = {}
    monkeypatch.setattr(ladder, "Kernel", lambda *a, **options: asked.update(options))
    rung.compile(N=3)
    assert asked["options"] == [f"-I{paths.examples_dir() / 'gemm/ladder'}"]
    assert asked["defines"] == {"N": 3}
    with pytest.raises(ladder.RungError, match="mine.py is no .cu file"):
        trial._readers_rung("gemm", "mine.py")


@pytest.mark.parametrize(
    ("name", "line", "says"),
    [
        ("reduction", "block=256 per_thred=4", "no option 'per_thred'.*Did you mean per_thread?"),
        ("matmul", "block=32x32 tile=32x32 launch=rows", None),
        ("matmul", "block=256 vectors=4", "'matmul' has no option 'vectors'.*kernel, block, tile"),
        ("tensor", "block=128 tile=64x64 multiples=1x8x8", None),
        ("reduction", "block 256", "'block' on the @rung line has no value: write block=VALUE"),
    ],
)
def test_an_option_that_the_ladder_does_not_know_is_refused(tmp_path, name, line, says):
    (tmp_path / "mine.cu").write_text(f"// @rung kernel=k {line}\n// requires: sm_80\n")
    if says:
        with pytest.raises(ladder.RungError, match=says):
            trial._readers_rung(name, str(tmp_path / "mine.cu"))
    else:
        assert trial._readers_rung(name, str(tmp_path / "mine.cu")).options["requires"] == "sm_80"


def test_the_options_are_those_that_the_ladders_read_and_the_page_describes():
    files = sorted(paths.examples_dir().glob("*/*/ladder.py"))
    folders = [path.parent for path in files]
    ladders = {
        (own if own.name != "ladder" else own.parent).name: own / "ladder.py" for own in folders
    }
    assert {ladder.load_ladder(part).name for part in ladders} == set(trial.OPTIONS)
    assert [ladder.load_ladder(part).where / "ladder.py" for part in ladders] == files
    reads = r"""(?:\.(?:numbers?|pair|choice)\(|options\.get\(\s*|_(?:pair|extents)\(\s*rung, )"(\w+)"|"(\w+)" in (?:rung\.)?option"""
    for part, path in ladders.items():
        found, known = ladder.load_ladder(part), set(trial.OPTIONS[ladder.load_ladder(part).name])
        read = {a or b for a, b in re.findall(reads, path.read_text(encoding="utf-8"))}
        used = {option for name in found.names for option in found[name].options}
        assert (read | used) - known <= {"requires"}, part
    root = paths.repo_root() / "docs"
    for lang in ("en", "zh"):
        page = (root / lang / "contributing.md").read_text(encoding="utf-8")
        section = re.search(r"\{ #rung \}(.*?)\{ #new-rung \}", page, re.DOTALL)[1]
        described = set(re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE))
        assert described == {"kernel"}.union(*trial.OPTIONS.values()), lang


def test_a_file_in_another_encoding_is_refused_with_its_byte(tmp_path, capsys):
    file, header = tmp_path / "mine.cu", tmp_path / "mine.cuh"
    file.write_bytes("// @rung kernel=k block=256\n// 归约\n".encode("gbk"))
    assert cli.main(["try", "reduction", str(file)]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and f"{file} is not UTF-8: byte 32 of the file, 0xb9" in said
    assert "in line 2" in said and "save it as UTF-8" in said
    file.write_text('// @rung kernel=k block=256\n#include "mine.cuh"\n// 归约\n', encoding="utf-8")
    header.write_bytes("// 归约\n".encode("gbk"))
    with pytest.raises(ladder.RungError, match="mine.cuh is not UTF-8"):
        trial._readers_rung("reduction", str(file))
    header.write_text("// 归约\n", encoding="utf-8")
    trial._readers_rung("reduction", str(file))


@pytest.mark.parametrize(
    ("text", "needs"),
    [
        ('asm("wgmma.fence.sync.aligned;");', "sm_90a"),
        ('#include "wgmma.cuh"', "sm_90a"),  # the part's own
        ("__global__ void k(const __grid_constant__ CUtensorMap map) {}", "sm_90"),
        ('asm("cp.async.cg.shared.global [%0], [%1], 16;");', "sm_80"),
        ("// as wgmma does, but with mma.sync /* wgmma */", None),
        ('// requires: sm_90a\n#include "wgmma.cuh"', None),
    ],
)
def test_a_file_says_itself_what_gpu_it_needs(tmp_path, text, needs):
    (tmp_path / "mine.cu").write_text(f"// @rung kernel=k block=128 tile=64x64\n{text}\n")
    if needs is None:
        trial._readers_rung("tensor", str(tmp_path / "mine.cu"))
        return
    with pytest.raises(ladder.RungError, match=rf"// requires: {needs}`$"):
        trial._readers_rung("tensor", str(tmp_path / "mine.cu"))


def test_instructions_of_one_generation_are_compiled_for_it(tmp_path, monkeypatch):
    asked = {}
    monkeypatch.setattr(ladder, "Kernel", lambda *a, **options: asked.update(options))
    for needs, arch in (("sm_90a", "sm_90a"), ("sm_80", None)):
        (tmp_path / "mine.cu").write_text(f"// @rung kernel=k\n// requires: {needs}\n")
        asked.clear()
        ladder.read_rung(tmp_path / "mine.cu").compile()
        assert asked.get("arch") == arch


class _Played:
    """A problem that notes what is checked."""

    checked: ClassVar[list] = []
    bytes = flops = None

    def __init__(self, **sizes):
        self.sizes = sizes

    def check(self, rung):
        self.checked.append(self.sizes)


def test_what_a_kernel_does_not_claim_is_said_and_not_checked(tmp_path, monkeypatch):
    (tmp_path / "mine.cu").write_text(
        "// @rung kernel=k block=32 tile=64x64 multiples=1x8x64\n// requires: sm_90a\n"
    )
    tensor = ladder.load_ladder("tensor")
    row = Row("mine", 1.0, 1.0, 1.0, None, None, False, None)
    said = []
    monkeypatch.setattr(_Played, "checked", [])
    monkeypatch.setattr(tensor, "problem", _Played)
    monkeypatch.setattr(tensor, "bench", lambda rungs, **_: Benchmark("x", "us", None, [row]))
    monkeypatch.setattr(trial, "show", said.append)
    monkeypatch.setattr(trial, "activate", lambda: said.append("activated"))
    monkeypatch.setattr(trial, "require", said.append)
    monkeypatch.setattr(trial, "_counters", lambda *a: None)
    verdict = trial.attempt("tensor", str(tmp_path / "mine.cu"))
    assert said[0].endswith("mine.cu needs sm_90a, as its line `// requires:` says")
    assert said[1:] == ["activated", "sm_90a"]
    sizes = [tuple(one[x] for x in "mnk") for one in _Played.checked]
    every = [*tensor.trials, *tensor.more_trials]
    assert sizes and all(n % 8 == 0 and n and k % 64 == 0 and k for _, n, k in sizes)
    assert len(sizes) + len(verdict.refused) == len(every) and len(verdict.refused) > 3
    assert "  not checked: mine takes only multiples of 64 for k, not 1 x 8 x 8" in verdict.text()
    # What it is timed on, it has to take.
    text = (tmp_path / "mine.cu").read_text()
    (tmp_path / "mine.cu").write_text(text.replace("1x8x64", "1x8x9"))
    with pytest.raises(ladder.RungError, match="4096 x 4096 x 4096: and that is what"):
        trial.attempt("tensor", str(tmp_path / "mine.cu"))


def test_what_the_rungs_on_tensor_cores_claim(tmp_path):
    tensor = ladder.load_ladder("tensor")
    for name in tensor.names:
        assert all(tensor.refuses(tensor[name], **one) is None for one in tensor.trials)
    early, final = tensor["mma_sync"], tensor["final"]
    assert "multiples of 8 for n" in tensor.refuses(early, 5, 9, 8)
    assert "multiples of 8 for k" in tensor.refuses(early, 5, 8, 0)
    assert tensor.refuses(final, 5, 9, 0) is None
    for said in ("1x8", "1x0x8", "axbxc"):
        (tmp_path / "mine.cu").write_text(f"// @rung kernel=k multiples={said}\n")
        with pytest.raises(ladder.RungError, match="needs multiples=1x8x8"):
            tensor.refuses(ladder.read_rung(tmp_path / "mine.cu"), 1, 1, 1)
    (tmp_path / "mine.cu").write_text("// @rung kernel=k multiples=1x1x1\n")
    anything = ladder.read_rung(tmp_path / "mine.cu")
    assert all(tensor.refuses(anything, **one) is None for one in tensor.more_trials)


def _counters(**changed: float) -> Profile:
    values = {"dram": 60, "requests": 1000, "sectors": 16000, "bytes": 512_000, "conflicts": 0}
    values |= {"warps": 90, "lanes": 32} | changed
    return Profile(
        "k",
        {metric: {"value": values[name], "unit": ""} for name, metric in trial._COUNTERS.items()},
    )


@pytest.mark.parametrize(
    ("changed", "of_peak", "words"),
    [
        ({}, 0.97, "only fewer bytes"),
        ({"sectors": 128_000}, 0.2, "8.0 bytes for each byte"),
        ({"conflicts": 5000}, 0.2, "5,000 shared-memory bank conflicts"),
        ({"lanes": 16}, 0.2, "16.0 of 32 lanes"),
        ({"warps": 25}, 0.2, "25 % of the warp slots"),
        ({"bytes": 64_000, "sectors": 2000}, 0.2, "less than 4 bytes per lane"),
        ({}, 0.2, "more bytes in flight"),
    ],
)
def test_counters_suggest_what_to_look_at(changed, of_peak, words):
    assert any(words in hint for hint in trial.hints(_counters(**changed), of_peak))


def test_nothing_is_suggested_where_nothing_stands_out():
    assert trial.hints(_counters(dram=90), 0.9) == []
    # Twelve warps of wgmma, fed by the TMA, far beyond the limit of ordinary FMAs.
    assert trial.hints(_counters(requests=0, bytes=0, sectors=0, warps=18), 11.0) == []
    assert "Nsight Compute" in trial.hints(None, 0.9)[0]


def test_the_verdict_names_the_neighbors():
    rows = [
        Row(name, us, us, us, None, None, False, None)
        for name, us in (("a", 1.0), ("mine", 2.0), ("b", 3.0))
    ]
    verdict = trial.Verdict(
        ladder.Rung("mine", "mine.cu", "k"), Benchmark("x", "us", None, rows), 2, ["look"]
    )
    assert verdict.text().splitlines() == ["mine: rank 2 of 3, behind a, ahead of b", "  - look"]
    first, last = (replace(verdict, rank=rank, hints=[]) for rank in (1, 3))
    assert first.text() == "mine: rank 1 of 3, ahead of mine"
    assert last.text() == "mine: rank 3 of 3, behind mine"


def test_the_order_is_in_the_files_and_a_file_without_a_place_is_on_no_ladder(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("CUDATUT_EXAMPLES", str(tmp_path))
    folder = "part/ladder"
    (tmp_path / folder).mkdir(parents=True)
    for name, place in (("second", "20 "), ("first", "3 "), ("variant", "")):
        (tmp_path / folder / f"{name}.cu").write_text(f"// @rung {place}kernel=k block=32\n")
    # What lies elsewhere in the part is no rung.
    (tmp_path / "part" / "other.cu").write_text("// @rung 5 kernel=k block=32\n")
    part = ladder.Ladder("part", problem=None)
    assert part.names == ("first", "second") and part["second"].options == {"block": "32"}
    assert ladder.read_rung(f"{folder}/variant.cu").kernel == "k"
    assert not any(name.startswith("part/") for name in ran.report()["files"])
    (tmp_path / folder / "third.cu").write_text("// @rung 20 kernel=k block=32\n")
    with pytest.raises(
        ladder.RungError,
        match=rf"{folder}/second.cu and examples/{folder}/third.cu both stand at 20",
    ):
        _ = ladder.Ladder("part", problem=None).names


def test_the_final_products_launch_is_planned_beside_it_and_no_other_rung_depends_on_it(tmp_path):
    from cudatut.book.tensor.gemm import gemm
    from cudatut.book.tensor.ladder import ladder as tensor

    final = tensor.LADDER["final"]
    assert final.options["launch"] == "gemm"
    assert tensor.planner(final, "gemm") is gemm.prepare
    # A reader's copy of it would be left aside for the book's own.
    (tmp_path / "mine.cu").write_text("// @rung kernel=k launch=gemm\n")
    with pytest.raises(ladder.RungError, match="launch=gemm is for tensor/ladder/final.cu"):
        tensor.planner(ladder.read_rung(tmp_path / "mine.cu"), "gemm")
    with pytest.raises(ladder.RungError, match=r"there is no tensor/gemm/gem\.py"):
        tensor.planner(final, "gem")
    sources = catalog.get("tensor/wgmma").sources()
    assert "tensor/ladder/wgmma.cu" in sources and "tensor/ladder/ladder.py" in sources
    assert not {"tensor/ladder/final.cu", "tensor/gemm/gemm.py"} & set(sources)


@pytest.mark.parametrize(
    ("name", "quiet", "said"),
    [
        ("dram", 80, 79),
        ("lanes", 24, 23),
        ("conflicts", 5, 6),
        ("sectors", 120, 121),
        ("bytes", 11520, 11519),
    ],
)
def test_counters_stand_out_beyond_their_limits(name, quiet, said):
    """100 requests of 32 lanes with 4 bytes each, in 32 bytes a sector: at the limits nothing is said."""
    usual = {
        "requests": 100,
        "bytes": 12800,
        "sectors": 400,
        "conflicts": 0,
        "warps": 90,
        "lanes": 32,
        "dram": 95,
    }
    if name == "sectors":  # 1.2 times as many bytes as are used
        usual["bytes"] = 3200
        usual["requests"] = 25
    if name == "bytes":
        usual["sectors"] = 0
    for value, expected in ((quiet, 0), (said, 1)):
        counters = {trial._COUNTERS[one]: number for one, number in (usual | {name: value}).items()}
        assert len(trial.hints(counters, 0.9)) == expected, (name, value)


@pytest.mark.parametrize(
    ("warps", "dram", "words"),
    [(50, 79, "memory waits"), (49, 79, "49 % of the warp slots"), (49, 80, None), (50, 80, None)],
)
def test_few_warps_are_told_where_memory_is_not_busy(warps, dram, words):
    found = trial.hints(_counters(warps=warps, dram=dram), 0.9)
    assert [words in hint for hint in found] == [True] if words else found == []


def test_a_rung_at_the_limit_is_told_so_and_beyond_it_is_not():
    usual = {
        "requests": 100,
        "bytes": 12800,
        "sectors": 400,
        "conflicts": 0,
        "warps": 90,
        "lanes": 32,
        "dram": 95,
    }
    counters = {trial._COUNTERS[one]: number for one, number in usual.items()}
    for of_peak, count in ((0.95, 0), (0.951, 1), (1.049, 1), (1.05, 0), (None, 0)):
        assert len(trial.hints(counters, of_peak)) == count


def test_an_option_may_hold_an_equals_sign(tmp_path):
    (tmp_path / "mine.cu").write_text("// @rung kernel=k<a==2> block=256 said=a=b\n")
    rung = ladder.read_rung(tmp_path / "mine.cu")
    assert rung.kernel == "k<a==2>" and rung.options == {"block": "256", "said": "a=b"}


def test_the_profiler_watches_one_launch_of_the_readers_kernel(monkeypatch):
    """Of the contest's instance, by a script that solves it once."""
    asked, launched = [], []
    rung = ladder.Rung("mine", "/a/mine's.cu", "k")

    def profile(script, kernel, metrics):
        asked.append((Path(script).read_text(), kernel, metrics))
        return "counters"

    monkeypatch.setattr(trial, "profile", profile)
    assert trial._counters("reduction", rung) == "counters"
    ((script, kernel, metrics),) = asked
    assert kernel == "k" and metrics == list(trial._COUNTERS.values())

    def problem(**instance):
        return SimpleNamespace(launcher=lambda rung: lambda: launched.append((rung, instance)))

    climbed = SimpleNamespace(problem=problem, contest={"n": 1000})
    monkeypatch.setattr(trial, "load_ladder", {"reduction": climbed}.__getitem__)
    monkeypatch.setattr(trial, "_readers_rung", lambda name, file: (name, file))
    exec(script, {})
    assert launched == [(("reduction", "/a/mine's.cu"), {"n": 1000})]
