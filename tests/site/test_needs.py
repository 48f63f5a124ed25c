"""What runs where, as pages say it: by one generator, from what the headers of examples require."""

import html
import re
from pathlib import Path

import pytest

from cudatut import catalog
from cudatut.site import contents, locale, needs, notebooks, state

ROOT = Path(__file__).resolve().parents[2]
PARTS = contents.load(ROOT / "docs" / "contents.yml")
WRITTEN = [chapter for chapter in contents.chapters(PARTS) if chapter.written]


def words(markup):
    return html.unescape(re.sub(r"<[^>]+>", " ", markup)).strip()


def test_one_requirement_is_a_sentence_and_several_are_counted():
    assert words(needs.line(["sm_80"] * 3)) == (
        "GPU: compute capability 8.0 or newer (A100, L4, RTX 30 or newer) · Colab: L4, paid"
    )
    said = words(needs.line(["sm_90a", "sm_75", "sm_75"]))
    assert said.startswith("2 of 3 examples: compute capability 7.5 or newer (T4, RTX 20 or newer)")
    assert said.endswith("1 of 3 examples: compute capability 9.0, exactly (H100, H200) · Colab: H100, paid")  # fmt: skip
    assert needs.line([]) == ""


def test_in_chinese():
    with locale.using("zh"):
        assert words(needs.line(["sm_80"])) == (
            "GPU：计算能力 8.0 及以上（A100、L4、RTX 30 或更新的型号）；Colab：L4（付费）"
        )
        assert "3 个示例中的 2 个：" in needs.line(["sm_90a", "sm_75", "sm_75"])


def test_marks_are_short_and_the_exact_one_differs():
    assert [needs.mark(one) for one in ("sm_75", "sm_90", "sm_90a")] == ["7.5+", "9.0+", "9.0"]
    with pytest.raises(ValueError, match="sm_90b"):
        needs.mark("sm_90b")


def test_a_chapter_counts_its_own_examples_and_a_route_its_parts():
    own = {one.id: words(needs.below_title("</h1>", one, PARTS)) for one in WRITTEN}
    assert own["hello"].startswith("GPU: compute capability 7.5") and "T4, free" in own["hello"]
    assert own["wgmma"].startswith("GPU: compute capability 9.0, exactly")
    assert "1 of 10 examples: compute capability 9.0, exactly" in own["serving"]
    assert not [name for name, said in own.items() if not said]
    assert words(needs.route("start")) == own["hello"]
    count = len([one for one in catalog.examples() if one.name.startswith(("llm/", "gemm/"))])
    assert f" of {count} examples:" in needs.route("llm", "gemm")


def test_pages_of_a_small_book_follow_the_header(project):
    project.page("examples.md", '# E { #top }\n\n```python exec="on"\n'
                 "from cudatut.site import notebooks\nprint(notebooks.index())\n```\n")  # fmt: skip
    site = project.build()
    chapter, example, index = (
        (site / name / "index.html").read_text(encoding="utf-8")
        for name in ("start/add", "examples/start/add", "examples")
    )
    requires = catalog.get("start/add").requires
    assert chapter.count(needs.line([requires])) == example.count(needs.line([requires])) == 1
    for page in (chapter, example):
        assert "Open in Colab (T4)" in page
    assert f"{needs.mark(requires)}</span></li>" in index and needs.gpus(requires) in index
    assert '<td class="ct' not in index and index.count("<td>1</td>") == 1
    # What no GPU of Colab's runs has no link that leads there.
    source = catalog.get("start/add").path
    text = source.read_text(encoding="utf-8")
    assert f"requires: {requires}" in text
    source.write_text(text.replace(f"requires: {requires}", "requires: sm_100a"), encoding="utf-8")
    state.begin(state.State(docs=project.root / "docs" / "en", repo_url="https://github.com/a/b"))
    links = notebooks._links(notebooks.missing.stand_in("start/add", "not run"))
    assert "colab" not in links.lower() and "add.ipynb" in links


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_every_page_says_what_it_runs_on(lang, built_site):
    folder = built_site / ("" if lang == "en" else "zh")
    read = lambda name: (folder / name / "index.html").read_text(encoding="utf-8")  # noqa: E731
    with locale.using(lang):
        for chapter in WRITTEN:
            line = needs.below_title("</h1>", chapter, PARTS).removeprefix("</h1>")
            page = read(chapter.name)
            assert page.count(line) == 1 and page.count('class="ct-needs"') == 1, chapter.name
        for example in catalog.examples():
            assert read(f"examples/{example.name}").count(needs.line([example.requires])) == 1
        index = read("examples")
        assert index.count('class="ct-quiet"') == len(catalog.examples())
        routes = read("").partition('id="routes"')[2].partition('id="contents"')[0]
        assert routes.count('class="ct-needs"') == routes.count("<strong>") == 3
