"""The book's overlays: all that Chinese pages, notebooks and exercises show has its Chinese, and code stays what it is."""

import re

import pytest
from rich.cells import cell_len

from cudatut import comments, overlays, paths
from cudatut.site import overlaid, references

_HAN = re.compile(r"[\u4e00-\u9fff]")
DOCS = paths.docs_dir() / "zh"
COLUMNS = 80


@pytest.fixture(scope="module")
def pieces():
    return list(dict.fromkeys(overlaid.shown(DOCS)))


def test_nothing_lacks_its_chinese():
    found = overlaid.lacking(DOCS)
    said = [f"{overlay}: {text} ({file})" for overlay, own in found.items() for text, file in own.items()]  # fmt: skip
    assert not said, "\n".join([f"{len(said)} texts", *said[:40]])


def test_no_pair_is_stale():
    assert not overlaid.stale(), "\n".join(map(str, overlaid.stale()))


def test_code_stays_what_it_is_and_fits_its_column(pieces):
    wide = []
    for file, translated, text in pieces:
        if translated is not overlays.code:
            continue
        language = "python" if file.endswith(".py") else "cuda"
        chinese = overlays.code(text, file)
        bare = (comments.replaced(one, language, lambda _: "") for one in (text, chinese))
        left, right = (re.sub(r"\s|//|#", "", one) for one in bare)
        assert left == right, (file, text[:200])
        most = max(COLUMNS, *map(cell_len, text.split("\n")))
        wide += [f"{file}: {line}" for line in chinese.split("\n") if cell_len(line) > most]
    assert not wide, "\n".join(wide)


def test_no_english_comment_is_typed_on_a_chinese_page():
    found = []
    for page in sorted(DOCS.glob("*/*.md")):  # what contributors read shows files as they are
        for number, line, kind, info in references.scan(page.read_text(encoding="utf-8")):
            language = {"python": "python", "py": "python", "cuda": "cuda", "cpp": "cuda", "c": "cuda"}.get(info.split(" ")[0])  # fmt: skip
            if kind == "code" and language and "exec" not in info and "8<" not in line:
                for one in comments.comments(line, language):
                    code = re.fullmatch(r"\w+\(.*\)", one.text)
                    if comments.has_english(one.text) and not _HAN.search(one.text) and not code:
                        found.append(f"{page.relative_to(DOCS)}:{number}: {one.text}")
    assert not found, "\n".join(found)


def test_pairs_are_chinese():
    """Or said to be the same with `zh: =`."""
    for path in sorted(paths.examples_dir().rglob(overlays.FILE)):
        for english, pair in overlays.load(path).items():
            if pair.words != english:
                place = f"{paths.shown(path)}:{pair.line}"
                names = len(re.findall(r"[A-Za-z]{2,}", pair.words)) <= 2  # such as 'lane'
                assert _HAN.search(pair.words) or names, place
                prose = re.sub(r"\([^()]*\)|\[[^\[\]]*\]|（[^（）]*, [^（）]*）", "", pair.words)
                assert not re.search(r"[\u4e00-\u9fff][,;:?]|[,;:?][\u4e00-\u9fff]", prose), place
