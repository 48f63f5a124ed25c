"""What pages leave to pages beside them, and how much a page may weigh. test_browser.py looks at it as a reader does."""

import gzip
import random
import re

import pytest

from cudatut import failures
from cudatut.site import locale, weight
from cudatut.site.deferred import deferred, divide

CHART = '<figure class="ct-bench"><figcaption>rate (H200)</figcaption></figure>'
FOLD = (
    '<details class="note deferred"><summary id="run-deeper">Look <b>deeper</b>'
    '<a class="headerlink" href="#run-deeper">&para;</a></summary>{}</details>'
)
HEAD = '<h1 id="top">T</h1><h2 id="run">Run<a class="headerlink" href="#run">&para;</a></h2>'


@pytest.fixture(autouse=True)
def english():
    with locale.using("en"):
        yield


def places(html):
    """(id, address) of each link that stands in the place of what is deferred."""
    return re.findall(r'data-deferred="([^"]+)"><p><a href="([^"]+)">', html)


def part(content, key):
    """What a page beside another holds under an id."""
    return re.search(rf'<div data-part="{key}">(.*)</div>', content)[1]


def test_a_page_that_defers_nothing_stays_as_it_is():
    html = HEAD + '<details class="note"><summary id="a">x</summary>deferred</details>'
    found = divide(html)
    assert found.html == html and found.pages == []


def test_another_gpus_chart_lies_on_a_page_of_its_own_under_the_same_heading():
    found = divide(f"{HEAD}<p>a</p>{deferred(CHART, 'nvidia-h200', 'H200')}<p>b</p>")
    ((key, address),) = places(found.html)
    assert CHART not in found.html and "<p>a</p>" in found.html and "<p>b</p>" in found.html
    (page,) = found.pages
    title, content = page.content("Sums", ["H100"], "<aside>made</aside>")
    assert page.name == "nvidia-h200" and title == "Sums: the numbers of the H200"
    assert address == f"nvidia-h200/#part-{key}" and f'id="part-{key}"' in content
    assert part(content, key) == CHART and '<a href="../#run">Run</a>' in content
    assert "about the H100." in content and "<aside>made</aside>" in content
    (top,) = page.toc(title)
    assert [one["name"] for one in top["children"]] == ["Run"]


def test_what_stands_above_all_headings_stands_under_none():
    (page,) = divide(f'<h1 id="top">T</h1>{deferred(CHART, "nvidia-h200", "H200")}').pages
    title, content = page.content("Sums")
    assert page.parts[0].section == ("top", "") and "<h2" not in content
    (top,) = page.toc(title)
    assert (top["level"], top["id"], top["name"], top["children"]) == (1, "top", title, [])


def test_a_deferred_fold_keeps_its_address_and_those_inside_it():
    body = '<p>x</p><details><summary id="run-numbers">n</summary>1</details>'
    found = divide(HEAD + FOLD.format(body) + "<p>after</p>")
    ((key, address),) = places(found.html)
    assert address == "folds/#run-deeper" and "<p>x</p>" not in found.html
    for one in ("run-deeper", "run-numbers"):  # links of other pages lead there
        assert found.html.count(f'id="{one}"') == 1
    assert re.search(r"</div></details><p>after</p>", found.html)
    (page,) = found.pages
    title, content = page.content("Sums")
    assert title == "Sums: folds" and part(content, key) == body
    assert '<h3 id="run-deeper">Look <b>deeper</b></h3>' in content and "headerlink" not in content
    ((run,),) = [one["children"] for one in page.toc(title)]
    assert [one["id"] for one in run["children"]] == ["run-deeper"]
    # A table of contents says of each heading the level that the page shows it with.
    assert (run["level"], run["children"][0]["level"]) == (2, 3)


def test_code_on_a_page_beside_has_no_id_around_it():
    """Material would call all blocks below it by that id, and its copy buttons would copy the first of them."""
    found = divide(HEAD + FOLD.format("<pre><code>a</code></pre><pre><code>b</code></pre>"))
    _, content = found.pages[0].content("Sums")
    around = content[: content.index("<pre>")]
    opened = re.findall(r"<(div|section|article)\b([^>]*)>", around)
    assert opened and not [one for _, one in opened if " id=" in one]


def test_a_chart_in_a_deferred_fold_is_left_to_the_page_of_its_gpu():
    inside = f"<section>{deferred(CHART, 'nvidia-h200', 'H200')}</section>"
    found = divide(HEAD + FOLD.format(inside))
    assert [page.name for page in found.pages] == ["nvidia-h200", "folds"]
    gpu, folds = (page.content("Sums")[1] for page in found.pages)
    ((key, address),) = places(folds)
    assert address == f"../nvidia-h200/#part-{key}" and part(gpu, key) == CHART


def test_links_hold_one_folder_further_down():
    body = (
        '<a href="../../glossary/#warp">w</a><a href="#run">r</a><a href="#run-numbers">n</a><i id="run-numbers"></i>'
        '<a href="https://example.org/">e</a><a href="/x/">s</a><img src="data:x" data-src="a.png"><pre>href="b"</pre>'
    )
    found = divide(HEAD + FOLD.format(body))
    _, content = found.pages[0].content("Sums")
    found = re.findall(r'(?:href|src)="([^"]*)"', content.partition("data-part")[2])
    assert found[:-1] == [
        *("../../../glossary/#warp", "../#run", "#run-numbers", "https://example.org/", "/x/"),
        *("data:x", "../a.png"),
    ]
    assert '<pre>href="b"</pre>' in content  # said by a program, no link


def test_the_same_twice_is_two_parts():
    html = deferred(CHART, "nvidia-h200", "H200")
    found = divide(html * 3)
    first, *others = keys = [key for key, _ in places(found.html)]
    assert re.fullmatch("[0-9a-f]{8}", first) and others == [f"{first}-2", f"{first}-3"]
    assert [one.id for one in found.pages[0].parts] == keys


def test_what_changes_has_another_id():
    """A page in a browser's cache never gets another chart than its own from a newer page beside it."""
    ids = [
        divide(deferred(html, "nvidia-h200", "H200")).pages[0].parts[0].id
        for html in (CHART, CHART.replace("rate", "time"))
    ]
    assert len(set(ids)) == 2


def test_a_fold_that_is_open_at_first_is_not_deferred():
    html = FOLD.format("<p>x</p>").replace('deferred"', 'deferred" open="open"')
    assert divide(html).pages == []


def test_a_deferred_fold_inside_another_goes_with_it():
    inner = FOLD.format("<p>x</p>").replace("run-deeper", "run-deeper-2")
    (page,) = divide(HEAD + FOLD.format(inner)).pages
    assert [one.anchor for one in page.parts] == ["run-deeper"] and "<p>x</p>" in page.parts[0].html


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_a_page_has_the_words_that_its_script_says(lang):
    with locale.using(lang):
        found = divide(deferred(CHART, "nvidia-h200", "H200"))
        words = {"loading", "shown", "failed", "again"}
        for html in (found.html, found.pages[0].content("Sums")[1]):
            (status,) = re.findall(r'<div class="ct-deferred__status" role="status"([^>]*)>', html)
            assert set(re.findall(r'data-(\w+)="[^"]', status)) == words and "{name}" in status


# --- weight ------------------------------------------------------------------------------------------


def page_of(kilobytes, fold=0):
    """A page of so many KB that cannot be compressed, `fold` of which stand in a fold."""
    noise = random.Random(1).randbytes

    def text(size):
        return noise(int(size * 1024)).hex()  # two letters for a byte, which gzip takes back

    folded = (
        f'<details class="note"><summary>A &amp; b</summary>{text(fold)}</details>' if fold else ""
    )
    return f"<article>{text(kilobytes - fold)}{folded}</article>"


def test_a_page_within_the_limit_is_no_problem():
    light = page_of(30)
    assert weight.problem(light) is None
    assert len(gzip.compress(light.encode(), 6)) == pytest.approx(weight.compressed(light), abs=40)


def test_a_heavy_page_is_told_with_its_heaviest_folds():
    told = weight.problem(page_of(45, fold=12))
    assert re.match(r"the page weighs (5\d|4\d)\.\d KB compressed, 36 are allowed: write ", told)
    assert "`??? note deferred`" in told and '"A & b" (1' in told
    assert weight.problem(page_of(45)).endswith("divide it")
    deferred_already = page_of(45, fold=12).replace('class="note"', 'class="note deferred"')
    assert weight.problem(deferred_already).endswith("divide it")


def test_of_many_folds_the_four_heaviest_are_named_first_and_without_their_markup(monkeypatch):
    monkeypatch.setattr(weight, "LIMIT", 2048)
    fold = '<details class="note"><summary>{}<a class="headerlink">#</a></summary>{}</details>'
    noise = random.Random(3).randbytes
    page = "".join(fold.format(f"<b>F{n}</b> a", noise(300 * n).hex()) for n in range(1, 6))
    ours = '<details class="ct-numbers"><summary>G</summary>' + noise(3000).hex() + "</details>"
    told = weight.problem(page + ours)
    assert re.findall(r'"([^"]*)" \((\d)\.\d KB\)', told) == [
        ("F5 a", "1"), ("F4 a", "1"), ("F3 a", "1"), ("F2 a", "0")
    ]  # fmt: skip
    assert ", 2 are allowed: write" in told
    nameless = weight.problem(f"<details>{noise(3000).hex()}</details>")
    assert re.search(r'the heaviest are "" \(3\.\d KB\)$', nameless)


def test_a_page_is_weighed_as_hosts_compress_it():
    """nginx and others take gzip's level 6."""
    drawn = random.Random(4)
    page = " ".join(drawn.choice(["warp", "block", "grid", "lane", "sum"]) for _ in range(20000))
    sizes = {level: len(gzip.compress(page.encode(), level)) for level in (5, 6, 7)}
    assert weight.compressed(page) == sizes[6] and len(set(sizes.values())) == 3


def test_a_page_may_weigh_as_much_as_the_limit_and_no_byte_more(monkeypatch):
    page = page_of(2)
    for room, told in ((0, False), (-1, True)):
        monkeypatch.setattr(weight, "LIMIT", weight.compressed(page) + room)
        assert (weight.problem(page) is not None) == told


def test_a_strict_build_refuses_a_heavy_page_and_builds_it_with_a_deferred_fold(project, caplog):
    words = random.Random(2).randbytes(45 * 1024).hex()
    lines = "\n".join(f"    {words[i : i + 60]}" for i in range(0, len(words), 60))
    fold = f'??? note "Look deeper: noise"\n\n    ```text\n{lines}\n    ```\n\n'
    project.body(fold)
    project.refused(caplog, "start/add.md: the page weighs", '"Look deeper: noise"')
    small = "\n".join(lines.splitlines()[:20])
    project.body(fold.replace("note", "note deferred", 1).replace(lines, small))
    site = project.build()
    assert words[:60] not in (site / "start/add/index.html").read_text()
    assert words[:60] in (site / "start/add/folds/index.html").read_text()
    assert words[:60] in (site / "search/search_index.json").read_text()


def test_an_example_that_failed_here_costs_no_page_beside_its_chapter(project, monkeypatch):
    monkeypatch.setenv("CUDATUT_SITE_MODE", "live")
    monkeypatch.setattr(failures, "reason", lambda name: "it raised")
    fold = '??? note deferred "Look deeper"\n\n    Words of the fold.\n'
    project.body(f"```example\nstart/add#bench\n```\n\n{fold}")
    site = project.build()
    assert "it raised" in (site / "start/add/index.html").read_text()
    assert "Words of the fold." in (site / "start/add/folds/index.html").read_text()


@pytest.mark.parametrize(("kilobytes", "beside"), [(5, False), (20, True)])
def test_long_results_of_an_example_lie_beside_its_page(project, kilobytes, beside):
    noise = random.Random(3).randbytes(kilobytes * 1024).hex()
    said = "\n".join(noise[i : i + 60] for i in range(0, len(noise), 60))
    stream = {"output_type": "stream", "name": "stdout", "text": said}
    project.book.recorded("start/add", project.book.notebook("start/add", stream))
    page = project.build() / "examples/start/add"
    own = (page / "index.html").read_text()
    assert '<div class="ct-cell" id="cell-id=bench">' in own
    assert (noise[:60] in own) is not beside
    if beside:
        assert 'href="folds/#bench-output"' in own
        assert noise[:60] in (page / "folds/index.html").read_text()
