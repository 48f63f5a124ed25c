"""A build of both languages, of which MkDocs does its part or fails."""

import zipfile

import pytest

from cudatut.site import building, publishing


@pytest.fixture
def out(tmp_path, monkeypatch):
    """Where a site lies already; call `fails(lang)` to have that language fail."""
    site, failing = tmp_path / "site", []

    def made(root, work, options, own):
        for lang in building.CONFIGS:
            (work / lang).mkdir()
            (work / lang / "index.html").write_text(lang)
        lines = ["INFO    -  a", "WARNING -  one"]
        return {lang: (lang in failing, lines) for lang in building.CONFIGS}

    monkeypatch.setattr(building, "_mkdocs", made)
    site.mkdir()
    (site / "index.html").write_text("old")
    return site, failing.append


def files(site):
    found = (path for path in site.rglob("*") if path.is_file())
    return {path.relative_to(site).as_posix(): path.read_text() for path in found}


def test_both_languages_take_the_place_of_the_old_site(out, tmp_path):
    (site, _), said = out, []
    assert building.build(tmp_path, site, say=said.append) == ["one"]
    with zipfile.ZipFile(site / publishing.SITE) as whole:
        inside = {name: whole.read(name).decode() for name in whole.namelist()}
    assert inside == {"cudatut-site/index.html": "en", "cudatut-site/zh/index.html": "zh"}
    (site / publishing.SITE).unlink()
    assert files(site) == {"index.html": "en", "zh/index.html": "zh"}
    assert len(said) == 1 and said[0].startswith(f"Built {site} in 0.")
    assert [path.name for path in tmp_path.iterdir()] == ["site"]


def test_a_language_that_fails_leaves_the_old_site(out, tmp_path):
    site, fails = out
    fails("zh")
    with pytest.raises(building.BuildError) as error:
        building.build(tmp_path, site)
    *said, end = str(error.value).splitlines()
    assert said == ["[en] WARNING -  one", "[zh] WARNING -  one"]
    assert end == f"The site was not built (zh); {site} is as it was."
    assert files(site) == {"index.html": "old"}
