"""The page 'Claims we ran': from synthetic recordings, and from the book's own."""

import ast
import copy
import re
from pathlib import Path

import pytest

from cudatut import catalog, recording, yaml_text
from cudatut.errors import CudatutError
from cudatut.recording import Cell, Recording, UnfitRecordingError
from cudatut.results import FORMS, FOUND, MIME, RULES, VERDICTS, read
from cudatut.site import claims, contents, locale

ROOT = Path(__file__).resolve().parents[2]
CLAIM = {
    "kind": "claim",
    "id": "conflicts",
    "source": "A tutorial 09 <b>",
    "place": {"en": "section 2 <i>", "zh": "第 2 节 <i>"},
    "form": "printed",
    "statement": {"en": "35 conflicts & more.", "zh": "35 次冲突以上。"},
    "expected": [4_587_520, 3],
    "measured": [4_587_520, 3],
    "unit": "conflicts",
    "rule": "equal",
    "control": {"what": {"en": "with padding <u>", "zh": "填充之后 <u>"}, "value": 12_345},
    "verdict": "confirmed",
}


def claim(id, **changes):
    return {**copy.deepcopy(CLAIM), "id": id, **changes}


@pytest.fixture
def shown(project):
    """The records and parts of a book whose examples show the claims given by name."""

    def make(**examples):
        for name, found in examples.items():
            name = name.replace("__", "/")
            project.book.example(name, "# %% setup\n# %% bench\n")
            outputs = [
                {"output_type": "display_data", "metadata": {}, "data": {MIME: one}}
                for one in found
            ]
            project.book.recorded(name, project.book.notebook(name, *outputs))
        records = [recording.require_good(example.name) for example in catalog.examples()]
        return records, contents.load(project.root / "docs/contents.yml")

    return make


def test_order_is_the_books_and_then_the_cells(shown):
    records, parts = shown(
        start__later=[claim("z")],  # a chapter that is not written
        start__add_solutions=[claim("c")],
        start__add=[claim("b"), claim("a")],
        elsewhere__x=[claim("y")],
    )
    found = claims.settled(records, parts)
    assert [one.claim["id"] for one in found] == ["b", "a", "c", "z", "y"]
    chapters = [one.chapter and one.chapter.id for one in found]
    assert chapters == ["add", "add", "add", "later", None]
    assert [one.part and one.part.id for one in found] == ["start"] * 4 + [None]


def recorded(name, *ids):
    results = [
        {"output_type": "display_data", "metadata": {}, "data": {MIME: one}}
        for one in (*map(claim, ids), {"kind": "check", "name": "x"})
    ]
    return Recording(name, Path("x.ipynb"), {}, [Cell("bench", "code", "", results, True)])


def test_claims_that_no_chapter_tells_stand_behind_those_of_its_part():
    words = {"en": "x", "zh": "x"}
    parts = tuple(
        contents.Part(part, words, words, words, tuple(
            contents.Chapter(part, name, words, written=True) for name in ("b", "a")
        ))
        for part in ("q", "p")
    )  # fmt: skip
    names = ("elsewhere/x", "p/free", "p/a", "q/free", "q/early", "q/a", "q/b")
    found = claims.settled([recorded(name, name) for name in names], parts)
    assert [one.record.name for one in found] == [
        *("q/b", "q/a", "q/early", "q/free", "p/a", "p/free", "elsewhere/x"),
    ]
    assert [one.cell for one in found] == ["bench"] * 7
    with pytest.raises(ValueError, match="used twice: a, b$"):
        claims.settled([recorded("q/a", "b", "a", "c"), recorded("q/b", "b", "a")], parts)


def test_the_page_names_what_was_withdrawn(project, shown):
    shown(start__add=[claim("one"), claim("two")])
    why = "withdrawn:\n  two: {en: 'because of <b>', zh: '因为 <b>'}\n"
    (project.root / "docs/claims.yml").write_text(why, encoding="utf-8")
    project.labels("add: 加法\none thread: 单线程\n_units: {conflicts: 次冲突}\n")
    body = '```python exec="on" idprefix=""\nfrom cudatut.site import claims\nprint(claims.table())\n```\n'
    project.page("claims.md", f"# Claims {{ #top }}\n\n{body}", "en")
    html = (project.build("en") / "claims/index.html").read_text(encoding="utf-8")
    assert '<tr id="one">' in html and '<tr id="two">' not in html
    assert "1 claims:" in html and "because of &lt;b&gt;" in html


def test_what_was_withdrawn_is_a_claim_of_the_book(book):
    """An entry goes when its example is recorded without it."""
    gone = yaml_text.load((ROOT / "docs/claims.yml").read_text(encoding="utf-8"))["withdrawn"]
    assert set(gone) <= {one.claim["id"] for one in claims.settled(*book)}
    assert all(set(why) == set(locale.LANGUAGES) for why in gone.values())


def test_a_page_without_claims():
    with locale.using("en"):
        html = claims.table_html([])
    assert "0 claims" in html and "<tbody" not in html and "ct-claims__where" not in html


def test_ids_are_unique(shown):
    with pytest.raises(ValueError, match="used twice: same"):
        claims.settled(*shown(start__add=[claim("same")], start__later=[claim("same")]))


@pytest.mark.parametrize("field", sorted(set(CLAIM) - {"kind"}))
def test_a_claim_that_is_not_whole_is_refused(shown, field):
    damaged = claim("x")
    del damaged[field]
    with pytest.raises(UnfitRecordingError, match=field):
        shown(start__add=[damaged])


@pytest.mark.parametrize(
    "changes",
    [
        {"verdict": "perhaps"},
        {"verdict": "refuted"},  # which its rule does not say
        {"form": "thought"},
        {"rule": "near"},
        {"statement": {"en": "Only."}},
        {"place": {"zh": "第 2 节"}},
        {"control": {"what": {"en": "Only."}, "value": 1}},
        {"measured": float("nan")},
    ],
)
def test_a_claim_that_cannot_be_shown_is_refused(shown, changes):
    with pytest.raises(UnfitRecordingError):
        shown(start__add=[claim("x", **changes)])


def test_table(shown):
    records, parts = shown(
        start__add=[claim("one"), claim("two", verdict="refuted", unit=None, measured="no")],
        start__later=[
            claim(
                "three",
                verdict="depends",
                depends={"en": "if large", "zh": "很大时"},
                sides=[
                    {"what": {"en": "large <b>", "zh": "大 <b>"}, "value": [4_587_520, 3]},
                    {"what": {"en": "small <b>", "zh": "小 <b>"}, "value": [4_587_521, 3]},
                ],
            )
        ],
    )
    found = claims.settled(records, parts)
    with locale.using("en"):
        en = claims.table_html(found)
    with locale.using("zh"):
        zh = claims.table_html(found)
    assert "35 conflicts &amp; more." in en and "A tutorial 09 &lt;b&gt;" in en
    assert "35 次冲突以上。" in zh and "35 conflicts" not in zh
    assert "3 claims:" in en and "共 3 条：" in zh
    assert en.count("Getting started") == zh.count("入门") == 1  # the part, once
    assert "4,587,520, 3 conflicts" in en and "NVIDIA Test" in en and "2026-11-20" in en
    # Where it stands, what was compared by which rule, and what shows that it could have come out otherwise.
    assert "section 2 &lt;i&gt; (printed)" in en and "第 2 节 &lt;i&gt;" in zh
    assert "with padding &lt;u&gt;" in en and "填充之后 &lt;u&gt;" in zh
    assert en.count("12,345") == zh.count("12,345") == 3
    assert "within 25% of the gain" in en and "by at least 2%" in en and "25%" in zh
    assert "measured: large &lt;b&gt;" in en and "实测：小 &lt;b&gt;" in zh
    assert "4,587,521, 3 conflicts" in en
    assert "if large" in en and "很大时" in zh and "if large" not in zh
    for html in (en, zh):
        assert re.findall(r'<tr id="([^"]*)"', html) == ["one", "two", "three"]
        assert html.count("start/add/#cell-id=bench") == 2
        assert len(re.findall(r'<a href="(?:\./)?start/add/">', html)) == 2  # its chapter
        assert 'start/later/"' not in html  # which is not written
        for cls in ("ct-pass", "ct-fail", "ct-note"):
            assert html.count(f'class="{cls}"') == 2  # in the totals and in its row
        assert html.count("<td data-column=") == 15


def test_the_page(project, shown):
    shown(start__add=[claim("one")])
    project.labels("add: 加法\none thread: 单线程\n_units: {conflicts: 次冲突}\n")
    for lang in ("en", "zh"):
        body = '```python exec="on" idprefix=""\nfrom cudatut.site import claims\nprint(claims.table())\n```\n'
        project.page("claims.md", f"# Claims {{ #top }}\n\n{body}", lang)
        html = (project.build(lang) / "claims/index.html").read_text(encoding="utf-8")
        assert '<tr id="one">' in html and CLAIM["statement"][lang][:4] in html
        assert 'href="../start/add/"' in html
        assert 'href="../examples/start/add/#cell-id=bench"' in html


# --- the book's own -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def book():
    """The recordings of the book that are whole, drafts included; whether all are is for other tests to say."""
    records = []
    for example in catalog.examples(drafts=True):
        try:
            records.append(recording.load(example.name))
        except CudatutError:
            continue
    return records, contents.load(ROOT / "docs/contents.yml")


def test_claims_of_the_book(book):
    found = claims.settled(*book)  # ids are unique
    assert found
    for one in found:
        claim = one.claim
        assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", claim["id"])
        assert claim["verdict"] in VERDICTS
        for both in (claim["statement"], claim["control"]["what"], claim.get("depends")):
            if both:
                code = not re.search(r"[a-z]{2} [a-z]{2}", both["zh"])  # such as a formula
                assert code or re.search(r"[\u4e00-\u9fff]", both["zh"]), claim["id"]
                # A name in a source may be Chinese; what we say of it in English is not.
                assert not re.search(r"[\u4e00-\u9fff]", both["en"]), claim["id"]


@pytest.fixture(scope="module")
def declared():
    """The claims that the examples declare, drafts included: name of the example, and the call's words as they are written."""
    return [
        (example.name, {word.arg: word.value for word in node.keywords})
        for example in catalog.examples(drafts=True)
        for node in ast.walk(ast.parse(example.path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "ct.claim"
    ]


def test_the_examples_declare_ten_claims_and_more(declared):
    """Their recordings may be missing, what they set out to settle is not."""
    literal = [words["id"] for _, words in declared if isinstance(words["id"], ast.Constant)]
    ids = [word.value for word in literal]
    assert len(ids) >= 10 and len(ids) == len(set(ids))


def test_what_the_examples_declare_is_whole(declared):
    """Found here rather than by the run on a GPU that records them."""
    needed = {"id", "source", "place", "form", "statement", "expected", "rule", "control"}
    values = {"measured", "sides", "seeds"}
    may = values | {"unit", "depends", "found", "elsewhere"}
    known = {"form": FORMS, "rule": RULES, "found": FOUND}
    for name, words in declared:
        assert not needed - set(words) and set(words) - needed <= may, name
        assert len(values & set(words)) == 1, (name, "one of measured, sides and seeds")
        assert ("depends" in words) == ("sides" in words), (name, "a condition has two sides")
        for key, possible in known.items():
            if isinstance(words.get(key), ast.Constant):
                assert words[key].value in possible, (name, key)
        control = words["control"]
        what = control.elts[0] if isinstance(control, ast.Tuple) else None
        assert what is None or len(control.elts) == 3, (name, "a control has to be something")
        for both in (words["place"], words["statement"], what, words.get("depends")):
            if isinstance(both, ast.Dict):
                assert {ast.literal_eval(key) for key in both.keys} == {"en", "zh"}, name


def other_numbers(claim):
    """Claims of which nothing else differs than what came out: as expected, far from it, on either side."""
    numbers = isinstance(claim["expected"], (int, float)) and claim["rule"] != "equal"
    far = {"above": -1e9, "below": 1e9}.get(claim["rule"], 1e9) if numbers else "another"
    near = claim["expected"]
    if numbers and claim["rule"] != "gain":
        near = -far
    for first in (near, far):
        more = {"seeds": [first] * len(claim["seeds"])} if claim.get("seeds") else {}
        if not claim.get("sides"):
            yield {**claim, **more, "measured": first}
            continue
        for second in (near, far):
            both = zip(claim["sides"], (first, second), strict=True)
            sides = [{**side, "value": value} for side, value in both]
            yield {**claim, **more, "measured": first, "sides": sides}


def test_no_verdict_is_beyond_a_measurement(book):
    """Fed other numbers, each claim of the book gets another verdict; a condition may turn out not to matter."""
    for one in claims.settled(*book):
        verdicts = [read(claim).settled() for claim in other_numbers(one.claim)]
        wanted = 3 if one.claim.get("sides") else 2
        assert len(set(verdicts)) == wanted, (one.claim["id"], verdicts)


def test_a_control_may_be_missed(book):
    """Each control of the book has to be something, and other numbers would have refused the recording."""
    for one in claims.settled(*book):
        control = one.claim["control"]
        assert control.get("known") is not None or control.get("within"), one.claim["id"]
        assert not read(one.claim).control.missed()
        damaged = read({**one.claim, "control": {**control, "value": "another"}})
        assert damaged.control.missed(), one.claim["id"]


def test_the_book_has_settled_enough(book):
    assert len(claims.settled(*book)) >= 95


@pytest.mark.parametrize("lang", locale.LANGUAGES)
def test_table_of_the_book(book, lang):
    found = claims.settled(*book)
    with locale.using(lang):
        html = claims.table_html(found)
    assert html.count('<tr id="') == len(found)
    assert "NVIDIA" in html


def test_the_page_is_in_both_languages():
    for lang in locale.LANGUAGES:
        text = (ROOT / "docs" / lang / "claims.md").read_text(encoding="utf-8")
        assert "print(claims.table(" in text
        assert "claims.md" in (ROOT / "docs" / lang / "index.md").read_text(encoding="utf-8")
