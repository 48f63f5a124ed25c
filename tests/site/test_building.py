"""A build of both languages, of which MkDocs does its part or fails."""

import zipfile

import pytest

from cudatut.site import building, publishing, shared


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


def test_a_first_site_that_fails_leaves_none(out, tmp_path):
    _, fails = out
    for lang in building.CONFIGS:
        fails(lang)
    with pytest.raises(building.BuildError) as error:
        building.build(tmp_path, tmp_path / "other")
    assert str(error.value).splitlines()[-1] == "The site was not built (en, zh)."
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize(
    ("mode", "options", "whole"), [("strict", ["--strict"], True), ("live", ["--strict"], False), ("preview", [], False)]
)  # fmt: skip
def test_what_mkdocs_is_told(out, tmp_path, monkeypatch, mode, options, whole):
    """Only a strict build offers the site as a whole."""
    told, made = [], building._mkdocs

    def listen(root, work, *given):
        assert (work / "shared").is_dir()
        told.extend((root, *given))
        return made(root, work, *given)

    monkeypatch.setattr(building, "_mkdocs", listen)
    said = []
    building.build(tmp_path, out[0], mode, ["a/b", "a/c"], said.append)
    root, given, own = told
    assert (root, given) == (tmp_path, options)
    assert (own["CUDATUT_SITE_MODE"], own["CUDATUT_SITE_ONLY"]) == (mode, "a/b a/c")
    assert own["PYTHONIOENCODING"] == "utf-8" and own["NO_MKDOCS_2_WARNING"] == "1"
    assert own[shared.FOLDER].endswith("shared")
    assert (out[0] / publishing.SITE).exists() is whole


def test_a_folder_that_cannot_be_written(tmp_path, monkeypatch):
    def refuse(out):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(building.workplace, "folder", refuse)
    with pytest.raises(building.BuildError) as error:
        building.build(tmp_path, tmp_path / "site")
    assert str(error.value) == (
        f"cannot write to {tmp_path} (Permission denied); name a folder with --out DIR"
    )


def test_mkdocs_runs_for_both_languages(tmp_path, monkeypatch):
    """With their own configurations and folders; what each says and how it ends is kept apart."""
    say = "import os, sys; print(os.environ['ABOUT'], *sys.argv[1:]); print('\\u4e2d', file=sys.stderr); "
    monkeypatch.setattr(building, "_MKDOCS", say + "sys.exit('zh' in sys.argv[-1][-2:])")
    own = {"ABOUT": "site", "PYTHONIOENCODING": "utf-8"}
    done = building._mkdocs(tmp_path, tmp_path / "work", ["--strict"], own)
    assert list(done) == ["en", "zh"]
    for lang, config in building.CONFIGS.items():
        status, lines = done[lang]
        line = f"site build --strict --config-file {config} --site-dir {tmp_path / 'work' / lang}"
        assert status == (lang == "zh") and sorted(lines) == [line, "中"]
