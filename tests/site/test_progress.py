"""What the reader's browser keeps: chapters read, exercises done, predictions; shown, saved, loaded and forgotten."""

import json
import re
from pathlib import Path

import pytest
import yaml

from cudatut import exercises

ROOT = Path(__file__).resolve().parents[2]
LANGS = {"en": "", "zh": "zh/"}
PARTS = yaml.safe_load((ROOT / "docs/contents.yml").read_text(encoding="utf-8"))["parts"]
CHAPTERS = [
    f"{part['id']}/{chapter['id']}"
    for part in PARTS
    for chapter in part["chapters"]
    if chapter["written"] is True  # not "draft"
]
CHAPTER, OTHER = "start/which_thread", "start/errors"
KEY = "cudatut-progress"
READ = "article > .ct-progress input"
KEPT = f"JSON.parse(localStorage.getItem('{KEY}'))?.chapters"


def keep(page, chapters):
    """Let the browser have kept this before a page is opened for the first time."""
    data = json.dumps({"cudatut": "progress", "version": 1, "chapters": chapters})
    page.evaluate(f"(text) => localStorage.setItem('{KEY}', text)", data)
    page.reload()


def in_navigation(page):
    """Titles in the navigation that have a tick."""
    found = page.locator(".md-nav--primary a.md-nav__link:has(> .ct-tick)").all_inner_texts()
    return [one.replace("✓", "").strip() for one in found]


# --- chapters and exercises --------------------------------------------------------------------------


@pytest.mark.parametrize("lang", LANGS)
@pytest.mark.parametrize("path", ["", f"{CHAPTER}/"])
def test_without_scripts_nothing_of_it_is_shown(open_page, lang, path):
    page = open_page(LANGS[lang] + path, java_script_enabled=False)
    for one in (".ct-progress", ".ct-done", ".ct-tick", ".ct-guess", "progress", ".ct-predicted"):
        assert page.locator(f"{one}:visible").count() == 0, one
    for place in page.locator(".ct-progress").all():
        assert place.inner_html() == "" and place.bounding_box()["height"] == 0


@pytest.mark.parametrize("lang", LANGS)
def test_a_chapter_that_was_read_is_ticked_in_both_languages(open_page, site_url, lang):
    page = open_page(f"{LANGS[lang]}{CHAPTER}/")
    assert in_navigation(page) == [] and page.locator(".ct-tick").count() == 0
    page.locator(READ).check()
    (title,) = in_navigation(page)
    assert page.inner_text("h1").startswith(title)
    page.reload()
    assert page.locator(READ).is_checked() and in_navigation(page) == [title]
    for other in LANGS.values():
        page.goto(f"{site_url}{other}{OTHER}/")
        assert len(in_navigation(page)) == 1 and not page.locator(READ).is_checked()
        page.goto(f"{site_url}{other}{CHAPTER}/")
        assert page.locator(READ).is_checked()
        page.goto(site_url + other)
        ticked = page.locator(".ct-part li:has(> .ct-tick) > a")
        assert ticked.evaluate_all("all => all.map((a) => a.getAttribute('href'))") == [
            f"{CHAPTER}/"
        ]
        # A part's link in the navigation leads to its first chapter, and is not that.
        assert in_navigation(page) == []
    page.goto(f"{site_url}{LANGS[lang]}{CHAPTER}/")
    page.locator(READ).uncheck()
    assert in_navigation(page) == [] and page.evaluate(KEPT) == {}


@pytest.mark.parametrize("lang", LANGS)
def test_exercises_are_ticked_by_hand_and_counted(open_page, site_url, lang):
    page = open_page(f"{LANGS[lang]}{CHAPTER}/")
    boxes = page.locator(".ct-exercise .ct-done input")
    count = len(exercises.of_chapter(CHAPTER))
    assert boxes.count() == count > 2
    # Each says of which exercise it is to those who hear it.
    names = boxes.evaluate_all("all => all.map((one) => one.getAttribute('aria-label'))")
    assert len({*names}) == count and all(str(n) in name for n, name in enumerate(names, 1))
    boxes.nth(2).check()
    boxes.nth(0).check()
    end = page.locator("article > .ct-progress")
    assert re.findall(r"\d+", end.inner_text()) == ["2", str(count)]
    assert page.evaluate(KEPT) == {CHAPTER: {"read": False, "done": [3, 1], "predicted": {}}}
    boxes.nth(2).uncheck()
    page.goto(site_url + LANGS[lang])
    item = page.locator(f".ct-part li:has(> a[href='{CHAPTER}/'])")
    assert item.locator(".ct-part__done").inner_text() == f"1/{count}"
    assert item.locator(".ct-tick").count() == 0


@pytest.mark.parametrize("lang", LANGS)
def test_the_landing_page_adds_up(open_page, lang):
    page = open_page(LANGS[lang])
    keep(
        page,
        {
            CHAPTER: {"read": True, "done": [1, 2]},
            OTHER: {"read": True, "done": [7000]},  # an exercise that is no longer there
            "basics/timing": {"read": False, "done": [1]},
            "start/gone": {"read": True},  # neither is this chapter
        },
    )
    all_exercises = sum(len(exercises.of_chapter(one)) for one in CHAPTERS)
    whole = page.locator(".ct-progress .ct-part__progress")
    assert set(re.findall(r"\d+", whole.inner_text())) == {
        "2",
        str(len(CHAPTERS)),
        "3",
        str(all_exercises),
    }
    bars = page.locator("section.ct-part progress")
    found = bars.evaluate_all("all => all.map((one) => [one.value, one.max])")
    wanted = [sum(one.startswith(f"{part['id']}/") for one in CHAPTERS) for part in PARTS]
    assert found == [[2 if k == 0 else 0, n] for k, n in enumerate(filter(None, wanted))]
    assert all(bars.evaluate_all("all => all.map((one) => one.ariaLabel)"))


def test_the_keyboard_is_enough(open_page):
    page = open_page(f"{CHAPTER}/")
    page.locator(READ).focus()
    page.keyboard.press("Space")
    assert page.locator(READ).is_checked()
    assert page.locator(READ).evaluate("(e) => getComputedStyle(e).outlineStyle") != "none"
    # The words beside a box belong to it.
    page.locator("article > .ct-progress label").click(position={"x": 60, "y": 8})
    assert not page.locator(READ).is_checked()


def test_pages_that_are_open_at_once_agree(open_page, site_url):
    page = open_page(f"{CHAPTER}/")
    other = page.context.new_page()
    other.goto(f"{site_url}zh/{CHAPTER}/")
    other.locator(READ).check()
    page.wait_for_function(f"document.querySelector('{READ}').checked")
    page.locator(".ct-guess").first.fill("7")
    other.wait_for_function("document.querySelector('.ct-guess').value === '7'")
    assert page.evaluate(KEPT)[CHAPTER]["read"] is True


def test_where_the_browser_keeps_nothing_the_page_works_all_the_same(open_page, site_url):
    page = open_page(f"{CHAPTER}/")
    page.context.add_init_script(
        "for (const name of ['getItem', 'setItem', 'removeItem'])"
        " Storage.prototype[name] = () => { throw new DOMException('no', 'SecurityError') }"
    )
    errors = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(f"{site_url}{CHAPTER}/?again")
    page.locator(READ).check()
    page.locator(".ct-exercise .ct-done input").first.check()
    page.locator(".ct-guess").first.fill("7")
    assert page.locator(READ).is_checked() and len(in_navigation(page)) == 1
    page.locator("#predict-output").click()
    assert page.locator(".ct-predicted").count() == 1
    # Material asks the browser, too; it is not ours to say how.
    assert not [one for one in errors if "SecurityError" not in one and one != "no"]


# --- saved, loaded, forgotten --------------------------------------------------------------------------


@pytest.mark.parametrize("lang", LANGS)
def test_it_is_saved_loaded_and_forgotten(open_page, site_url, tmp_path, lang):
    page = open_page(f"{LANGS[lang]}{CHAPTER}/")
    page.locator(READ).check()
    page.locator(".ct-exercise .ct-done input").first.check()
    page.locator(".ct-guess").first.fill("12")
    before = page.evaluate(KEPT)
    page.goto(site_url + LANGS[lang])
    save, load, forget = page.locator(".ct-progress button").all()
    with page.expect_download() as waiting:
        save.click()
    assert waiting.value.suggested_filename == "cudatut-progress.json"
    file = tmp_path / "saved.json"
    waiting.value.save_as(file)
    saved = json.loads(file.read_text(encoding="utf-8"))
    assert saved == {"cudatut": "progress", "version": 1, "chapters": before}
    # Whoever says no keeps it.
    asked = []
    page.once("dialog", lambda dialog: (asked.append(dialog.message), dialog.dismiss()))
    forget.click()
    assert page.evaluate(KEPT) == before
    page.once("dialog", lambda dialog: dialog.accept())
    forget.click()
    assert len(asked) == 1 and page.evaluate(f"localStorage.getItem('{KEY}')") is None
    assert page.locator(".ct-tick").count() == 0
    status = page.locator(".ct-progress [role=status]")
    told = {status.inner_text()}
    # What was done since stays beside what the file has.
    keep(page, {CHAPTER: {"done": [2], "predicted": {"0.0.1": "old", "0.1.1": "3"}}, OTHER: {"read": True}})  # fmt: skip
    with page.expect_file_chooser() as waiting:
        page.locator(".ct-progress button").nth(1).click()
    waiting.value.set_files(file)
    page.wait_for_function("document.querySelector('.ct-progress [role=status]').textContent")
    told.add(status.inner_text())
    found = page.evaluate(KEPT)
    assert found[OTHER]["read"] is True and found[CHAPTER]["read"] is True
    assert found[CHAPTER]["done"] == [2, 1]
    assert found[CHAPTER]["predicted"] == {"0.0.1": "12", "0.1.1": "3"}
    assert page.locator(".ct-part .ct-tick").count() == 2
    assert len(told) == 2 and load is not None


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "null", '{"chapters": {}}', '{"cudatut": "progress", "version": 2, "chapters": {}}',
     '{"cudatut": "progress", "version": 1, "chapters": []}', '{"cells": [], "nbformat": 4}'],
)  # fmt: skip
def test_another_file_is_refused_and_changes_nothing(open_page, tmp_path, text):
    page = open_page()
    keep(page, {CHAPTER: {"read": True}})
    before = page.evaluate(f"localStorage.getItem('{KEY}')")
    file = tmp_path / "other.json"
    file.write_text(text, encoding="utf-8")
    page.locator(".ct-progress input[type=file]").set_input_files(file)
    status = page.locator(".ct-progress [role=status]")
    page.wait_for_function("document.querySelector('.ct-progress [role=status]').textContent")
    assert "no file of a reader's progress" in status.inner_text()
    assert page.evaluate(f"localStorage.getItem('{KEY}')") == before


def test_of_a_file_only_what_has_our_form_is_taken(open_page, site_url, tmp_path):
    page = open_page()
    bad = '<img src=x onerror="window.bad = true">'
    chapters = {
        "__proto__": {"read": True},
        "start/../errors": {"read": True},
        bad: {"read": True},
        "start/hello": {"read": "yes", "done": [1, 1, -2, 1.5, "3", None], "predicted": [1]},
        "start/first_kernel": 7,
        CHAPTER: {"predicted": {"0.0.1": bad, "0.0.2": 5, "x": "y", "__proto__": "z"}},
    }
    file = tmp_path / "some.json"
    file.write_text(
        json.dumps({"cudatut": "progress", "version": 1, "chapters": chapters}), "utf-8"
    )
    page.locator(".ct-progress input[type=file]").set_input_files(file)
    page.wait_for_function(f"{KEPT}")
    assert page.evaluate(KEPT) == {
        "start/hello": {"read": False, "done": [1], "predicted": {}},
        CHAPTER: {"read": False, "done": [], "predicted": {"0.0.1": bad}},
    }
    page.goto(f"{site_url}{CHAPTER}/#predict-output")
    page.wait_for_selector(".ct-predicted")
    assert page.locator(".ct-guess").first.input_value() == bad
    assert bad in page.locator(".ct-predicted").inner_text()
    assert page.evaluate("window.bad") is None


# --- predictions ---------------------------------------------------------------------------------------


def shown(page):
    """The rows of the comparison, without its head."""
    return page.locator(".ct-predicted tbody tr").evaluate_all(
        "all => all.map((row) => [...row.cells].map((cell) => cell.textContent))"
    )


def test_what_was_predicted_stands_beside_what_the_page_says(open_page, site_url):
    page = open_page(f"{CHAPTER}/")
    fields = page.locator("table .ct-guess")
    assert fields.count() == 6
    names = fields.evaluate_all("all => all.map((one) => one.ariaLabel)")
    assert len({*names}) == 6 and names[0].startswith("3")
    page.locator("#predict-output").click()
    assert page.locator(".ct-predicted").count() == 0  # nothing was predicted
    page.locator("#predict-output").click()
    for k, words in ((0, "0"), (1, " 2 "), (5, "1")):
        fields.nth(k).fill(words)
    page.locator("#predict-output").click()
    rows = shown(page)
    assert [row[1:] for row in rows] == [["0", "0"], ["2", "3"], ["1", "1"]]
    assert [row[0] for row in rows] == [names[0], names[1], names[5]]
    # It stands before the output, and follows what is written while the fold is open.
    assert page.locator("#predict-output + .ct-predicted").count() == 1
    fields.nth(1).fill("3")
    assert shown(page)[1][1:] == ["3", "3"]
    page.reload()
    assert fields.nth(1).input_value() == "3"
    # The Chinese page has the same table. What the program prints there is English, and has none of its names.
    page.goto(f"{site_url}zh/{CHAPTER}/#predict-output")
    page.wait_for_selector(".ct-predicted")
    assert [row[1:] for row in shown(page)] == [["0"], ["3"], ["1"]]
    assert page.locator(".ct-predicted thead th").count() == 2
    for k in range(6):
        fields.nth(k).fill("")
    assert page.locator(".ct-predicted").count() == 0 and page.evaluate(KEPT) == {}


def test_an_answer_is_found_by_the_names_of_its_row_and_column(open_page):
    page = open_page(f"{CHAPTER}/")
    page.evaluate("""() => {
      const output = document.querySelector('#predict-output').parentElement.querySelector('pre')
      output.textContent = 'predicted   Block, counted   Thread\\n3     1   \\n  7    a b     2\\n9  4 5\\n9   6   7\\n'
    }""")
    for k in range(6):
        page.locator(".ct-guess").nth(k).fill("x")
    page.locator("#predict-output").click()
    # A name may go on behind a comma; what a row lacks, and what stands there twice, is not known.
    assert [row[2] for row in shown(page)] == ["1", "–", "a b", "2", "–", "–"]


def test_where_the_page_names_no_answer_the_prediction_stands_alone(open_page):
    page = open_page("start/hello/")
    page.locator(".ct-guess").first.fill("one")
    page.locator("#predict-output").click()
    ((name, words),) = shown(page)
    assert words == "one" and name == "as it stands"


@pytest.mark.parametrize("lang", LANGS)
def test_every_table_of_a_prediction_can_be_filled_in(open_page, site_url, built_site, lang):
    """And the fold with its answer stands behind it."""
    page, found = open_page(LANGS[lang]), 0
    for chapter in CHAPTERS:
        text = (built_site / LANGS[lang] / chapter / "index.html").read_text(encoding="utf-8")
        section = text.partition('id="predict"')[2].partition("<h2")[0]
        outside = re.sub(r"<details.*?</details>", "", section, flags=re.DOTALL)
        empty = outside.count("<td></td>")
        if not empty or (found > 8 and not chapter.startswith(("start/", "basics/"))):
            continue
        found += 1
        page.goto(f"{site_url}{LANGS[lang]}{chapter}/")
        fields = page.locator(".ct-guess")
        assert fields.count() == empty, chapter
        assert page.locator("details .ct-guess").count() == 0
        fields.first.fill("1")
        folds = page.locator("article > details:is(.example, .success)")
        folds.evaluate_all("all => all.forEach((fold) => { fold.open = true })")
        page.wait_for_selector(".ct-predicted", state="attached")
        assert len(shown(page)) == 1, chapter
    assert found > 12


# --- how it looks --------------------------------------------------------------------------------------


@pytest.mark.parametrize("lang", LANGS)
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("path", ["", f"{CHAPTER}/"])
def test_it_can_be_read_and_fits_a_telephone(open_page, contrast, lang, scheme, path):
    page = open_page(LANGS[lang] + path, scheme=scheme, width=320)
    predicted = {"0.0.1": "a long prediction, with many words, of what will come out", "0.1.1": "1"}
    kept = {"read": True, "done": [1], "predicted": predicted}
    keep(page, {CHAPTER: kept, OTHER: kept})
    page.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true })")
    page.wait_for_function("!document.querySelector('details > [data-deferred]')")
    assert page.locator(".ct-tick").count() >= 1
    assert page.evaluate("document.documentElement.scrollWidth") <= 320
    assert page.evaluate(contrast, False)["found"] == []


def test_a_printed_page_has_nothing_to_tick(open_page):
    page = open_page(f"{CHAPTER}/")
    page.locator(READ).check()
    page.emulate_media(media="print")
    for one in (".ct-progress", ".ct-done", ".ct-begin"):
        assert page.locator(f"{one}:visible").count() == 0, one


@pytest.mark.parametrize("lang", LANGS)
def test_a_rule_stands_in_a_box(open_page, contrast, lang):
    title = {"en": "Rule", "zh": "规则"}[lang]
    for scheme in ("light", "dark"):
        page = open_page(f"{LANGS[lang]}start/hello/", scheme=scheme)
        page.evaluate(
            """(title) => document.querySelector('h2').insertAdjacentHTML('afterend',
              `<div class="admonition rule"><p class="admonition-title">${title}</p><p>Keep this.</p></div>`)""",
            title,
        )
        style = page.evaluate("""() => {
          const box = getComputedStyle(document.querySelector('.rule'))
          return [box.borderTopWidth, box.borderLeftWidth, getComputedStyle(document.querySelector('.rule > p'), '::before').display]
        }""")
        assert style[0] == style[1] != "0px" and style[2] == "none"
        assert page.evaluate(contrast, False)["found"] == []
