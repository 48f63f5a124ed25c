"""Old names still lead to what they named: on the site, and on the command line."""

import re

import pytest

from cudatut import catalog, recording
from cudatut.errors import CudatutError
from cudatut.site import locale, publishing

EXAMPLES = {one.name for one in catalog.examples(drafts=True)}
RENAMED = {old: new for old, new in catalog.renamed().items() if new in EXAMPLES}


def test_those_of_the_book_are_known():
    assert RENAMED["gemm/vectorised_solutions"] == "gemm/vectorized_solutions"
    assert not EXAMPLES & set(RENAMED)


@pytest.mark.parametrize("old", RENAMED)
def test_an_old_name_gives_the_new_example_and_says_so(capsys, old):
    assert catalog.get(old).name == RENAMED[old]
    assert catalog.get(f"examples/{old}.py").name == RENAMED[old]
    out, err = capsys.readouterr()
    assert not out
    assert err.count(f"{old} is called {RENAMED[old]} now.") == 2


def test_an_example_that_moved_alone_has_no_other_name(tmp_path, monkeypatch):
    monkeypatch.setenv("CUDATUT_EXAMPLES", str(tmp_path))
    assert catalog.renamed() == {}
    moves = "a/same.py: a/same/chapter.py\na/old.py: a/new/more.py\na/old.cu: a/new/new.cu\n"
    (tmp_path / "moved.yml").write_text(moves, encoding="utf-8")
    assert catalog.renamed() == {"a/old": "a/new_more"}
    (tmp_path / "moved.yml").write_text("- start/old", encoding="utf-8")
    with pytest.raises(CudatutError, match=r"moved\.yml"):
        catalog.renamed()


def test_old_addresses_lead_on(tmp_path, monkeypatch):
    examples, site = tmp_path / "examples", tmp_path / "site"
    examples.mkdir()
    moves = (
        "a/old.py: a/new/chapter.py\na/gone.py: a/nothing/chapter.py\na/here.py: a/new/chapter.py\n"
    )
    (examples / "moved.yml").write_text(moves)
    monkeypatch.setenv("CUDATUT_EXAMPLES", str(examples))
    for page in ("a/new", "examples/a/new", "a/here"):
        (site / page).mkdir(parents=True)
        (site / page / "index.html").write_text("a page")
    with locale.using("zh"):
        written = publishing.redirects(site, "https://host/book/zh/")
    assert written == ["examples/a/old/", "a/old/", "examples/a/here/"]
    assert (site / "a/here/index.html").read_text() == "a page"
    text = (site / "examples/a/old/index.html").read_text(encoding="utf-8")
    assert '<html lang="zh">' in text
    assert 'href="https://host/book/zh/examples/a/new/"' in text
    target = re.search(r'url=([^"]+)"', text)[1]
    assert (site / "examples/a/old" / target).resolve() == site / "examples/a/new"
    assert "location.hash" in text


def test_the_site_has_them_in_both_languages(built_site):
    for folder in ("", "zh/"):
        for old in RENAMED:
            assert (built_site / folder / "examples" / old / "index.html").is_file()
        assert (built_site / folder / "gemm/vectorised/index.html").is_file()


def test_files_that_moved_are_at_their_old_addresses_too(built_site):
    """Those that the site offered: what recordings were made from."""
    offered = {
        file for one in catalog.examples() for file in recording.load(one.name).metadata["sources"]
    }
    old = {before: now for before, now in catalog.moved().items() if now in offered}
    assert len(old) > 50
    for before, now in old.items():
        text = (catalog.paths.examples_dir() / now).read_bytes()
        for folder in (built_site, built_site / "zh"):
            assert (folder / "examples" / before).read_bytes() == text, before
