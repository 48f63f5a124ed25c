"""Old names lead on: how the command line and the site do it. tests/test_addresses.py: that all of the book's do."""

import re

import pytest

from cudatut import catalog
from cudatut.errors import CudatutError
from cudatut.site import locale, publishing

EXAMPLES = {one.name for one in catalog.examples(drafts=True)}
RENAMED = {old: new for old, new in catalog.renamed().items() if new in EXAMPLES}


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
    (site / "examples/a/old/index.html").unlink()
    assert publishing.redirects(site) == ["examples/a/old/"]  # a page that stands there stays
    text = (site / "examples/a/old/index.html").read_text(encoding="utf-8")
    assert f'rel="canonical" href="{target}"' in text  # where the address is unknown
