"""Old names lead on: how the command line and the site do it. tests/test_addresses.py: that all of the book's do."""

import re
from pathlib import Path

import pytest
import yaml

from cudatut import catalog
from cudatut.errors import CudatutError
from cudatut.site import locale, publishing

ROOT = Path(__file__).resolve().parents[2]
RENAMED = yaml.safe_load((ROOT / "examples/renamed.yml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("old", RENAMED)
def test_an_old_name_gives_the_new_example_and_says_so(capsys, old):
    assert catalog.get(old).name == RENAMED[old]
    assert catalog.get(f"examples/{old}.py").name == RENAMED[old]
    out, err = capsys.readouterr()
    assert not out
    assert err.count(f"{old} is called {RENAMED[old]} now.") == 2


def test_a_list_that_is_none_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("CUDATUT_EXAMPLES", str(tmp_path))
    assert catalog.renamed() == {}
    (tmp_path / "renamed.yml").write_text("- start/old", encoding="utf-8")
    with pytest.raises(CudatutError, match=r"renamed\.yml"):
        catalog.renamed()


def test_old_addresses_lead_on(tmp_path, monkeypatch):
    examples, site = tmp_path / "examples", tmp_path / "site"
    examples.mkdir()
    (examples / "renamed.yml").write_text("a/old: a/new\na/gone: a/nothing\na/here: a/new\n")
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
