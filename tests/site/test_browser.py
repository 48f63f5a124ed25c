"""The built site in headless Chromium: what a reader does, in both languages. test_every_page.py looks at all pages."""

import gzip
import json
import re
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import yaml

from cudatut import recording
from cudatut.site import glossary

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
LANGS = {"en": "", "zh": "zh/"}
CHAPTERS = [
    f"{part['id']}/{chapter['id']}"
    for part in yaml.safe_load((DOCS / "contents.yml").read_text(encoding="utf-8"))["parts"]
    for chapter in part["chapters"]
    if chapter["written"] is True  # not "draft"
]


# --- language --------------------------------------------------------------------------------------


def follow(link):
    """Click a link that leads to another page, and wait until that page is there."""
    page, here = link.page, urlsplit(link.page.url).path
    # Not any navigation: what is scrolled to becomes the address's anchor, which counts as one.
    with page.expect_navigation(url=lambda url: urlsplit(url).path != here):
        link.click()


def switch(page):
    follow(page.locator(".ct-language"))


@pytest.mark.parametrize("path", ["", "glossary/", "api/", "examples/"])
def test_the_language_switch_keeps_other_pages(open_page, site_url, path):
    page = open_page(path)
    switch(page)
    assert page.url == f"{site_url}zh/{path}"
    switch(page)
    assert page.url == site_url + path


@pytest.mark.parametrize("path", ["start/errors/", "glossary/", ""])
def test_the_language_switch_keeps_the_section(open_page, site_url, path):
    page = open_page(path)
    anchor = page.evaluate(
        "[...document.querySelectorAll('article h2[id]')].map((h) => h.id).slice(-1)[0]"
    )
    page.evaluate("(id) => { location.hash = id }", anchor)
    switch(page)
    assert page.url == f"{site_url}zh/{path}#{anchor}"
    switch(page)
    assert page.url == f"{site_url}{path}#{anchor}"


def test_the_frame_speaks_chinese_on_chinese_pages(open_page):
    page = open_page("zh/start/errors/")
    assert page.inner_text(".md-skip").strip() == "跳到正文"
    assert set(page.eval_on_selector_all(".headerlink", "all => all.map((a) => a.title)")) == {
        "本节的链接",
        "此折叠栏的链接",
    }


@pytest.mark.parametrize("lang", LANGS)
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("start/first_optimisation/", "start/first_optimization/"),
        ("examples/gemm/vectorised/", "examples/gemm/vectorized/"),
    ],
)
def test_an_old_address_leads_to_the_new_one(open_page, site_url, old, new, lang):
    page = open_page(f"{LANGS[lang]}{old}#code")
    page.wait_for_url(f"{site_url}{LANGS[lang]}{new}#code")


@pytest.mark.parametrize(
    "path", ["", "start/hello/", "zh/examples/start/hello/", "zh/glossary/", "no_such_page/"]
)
def test_the_page_is_as_dark_as_the_system(open_page, path):
    """Also where that changes while the page is open. test_every_page.py looks at both, without the system's help."""
    page = open_page(path, scheme="dark")
    scheme = "document.body.dataset.mdColorScheme"
    assert page.evaluate(scheme) == "slate"
    for system, name in (("light", "default"), ("dark", "slate")):
        page.emulate_media(color_scheme=system)
        page.wait_for_function(f"(name) => {scheme} === name", arg=name)


@pytest.mark.parametrize("path", ["start/hello/", "zh/start/hello/"])
def test_light_or_dark_survives_the_language_switch(open_page, path):
    page = open_page(path)
    scheme = "document.body.dataset.mdColorScheme"
    assert page.evaluate(scheme) == "default"
    while page.evaluate(scheme) != "slate":
        page.locator("[data-md-component=palette] label:visible").click()
    switch(page)
    assert page.evaluate(scheme) == "slate"
    switch(page)
    assert page.evaluate(scheme) == "slate"


# --- folds -----------------------------------------------------------------------------------------


OPEN = "[...document.querySelectorAll('article details[open] > summary')].map((one) => one.id)"


@pytest.mark.parametrize("lang", LANGS)
def test_a_link_to_a_fold_opens_it_and_those_around_it(open_page, lang):
    page = open_page(f"{LANGS[lang]}start/errors/#refused-output")
    page.wait_for_function(f"{OPEN}.length")
    assert page.evaluate(OPEN) == ["refused-output"]
    top = page.evaluate("document.querySelector(location.hash).getBoundingClientRect().top")
    header = page.evaluate("document.querySelector('.md-header').getBoundingClientRect().bottom")
    assert header <= top < 900
    # A link on the page itself, and the same one again after the reader has closed the fold.
    for _ in range(2):
        page.evaluate(
            "document.querySelectorAll('details').forEach((fold) => { fold.open = false })"
        )
        page.evaluate("""() => {
          const link = document.createElement('a')
          link.href = '#late-output'
          document.querySelector('article').append(link)
          link.click()
        }""")
        page.wait_for_function(f"{OPEN}.includes('late-output')")


def test_a_link_into_a_fold_opens_all_around_it(open_page):
    page = open_page("start/errors/")
    inner, outer = page.evaluate("""() => {
      const inner = document.querySelector('article details details')
      const outer = inner.parentElement.closest('details')
      return [inner, outer].map((fold) => fold.querySelector('summary').id)
    }""")
    page.evaluate("(id) => { location.hash = id }", inner)
    page.wait_for_function(f"{OPEN}.length >= 2")
    assert {inner, outer} <= set(page.evaluate(OPEN))


def test_the_link_of_a_fold_is_its_address_and_does_not_close_it(open_page, site_url):
    page = open_page("start/errors/")
    link = page.locator("summary#sanitizer-deeper > a.headerlink")
    # Watched from before the click: what is scrolled to may soon take the place of this anchor in the address.
    with page.expect_navigation(url=f"{site_url}start/errors/#sanitizer-deeper"):
        link.click()
    assert page.evaluate(OPEN) == ["sanitizer-deeper"]


@pytest.mark.parametrize("lang", LANGS)
def test_a_hit_of_the_search_inside_a_fold_is_seen(open_page, site_url, lang):
    """The folds of the section that has the hit; what is open there shows nothing of it."""
    page = open_page(LANGS[lang])
    search(page, "cudaGetLastError")
    href = page.eval_on_selector_all(
        ".md-search-result__link",
        "all => all.map((a) => a.href).find((href) => href.includes('#sanitizer'))",
    )
    assert "h=" in href
    page.goto(href)
    page.wait_for_selector("details[open] mark[data-md-highlight]")
    opened = page.evaluate(OPEN)
    assert opened and all(one.startswith("sanitizer-") for one in opened)
    marks = "[...document.querySelectorAll('article mark[data-md-highlight]')]"
    assert page.evaluate(f"{marks}.some((mark) => mark.checkVisibility())")


def test_a_hit_that_is_seen_opens_no_fold(open_page):
    page = open_page("start/errors/?h=sanitizer#sanitizer")
    page.wait_for_selector("article mark[data-md-highlight]")
    assert page.evaluate(OPEN) == []


def test_the_language_switch_keeps_folds_open(open_page):
    page = open_page("start/errors/#late-output")
    page.wait_for_function(f"{OPEN}.length")
    page.evaluate("document.querySelector('#sanitizer-deeper').parentElement.open = true")
    switch(page)
    page.wait_for_function(f"{OPEN}.length >= 2")
    assert page.evaluate(OPEN) == ["late-output", "sanitizer-deeper"]
    page.goto(page.url.partition("#")[0].replace("start/errors", "start/hello"))
    assert page.evaluate(OPEN) == []


# --- search ----------------------------------------------------------------------------------------


IN_THE_FIELD = "document.activeElement.matches('.md-search__input')"


def type_into_the_search(page, words):
    page.keyboard.press("/")
    page.wait_for_function(IN_THE_FIELD)
    page.keyboard.type(words)


def search(page, words):
    """Put `words` into the search; return the paths of the pages it finds.

    All at once: typed letter by letter, the first answer that is seen may be the one to their beginning.
    """
    type_into_the_search(page, "")
    page.keyboard.insert_text(words)
    page.wait_for_selector(".md-search-result__link")
    links = page.eval_on_selector_all(".md-search-result__link", "all => all.map((a) => a.href)")
    return [urlsplit(link).path for link in links]


def chinese_sentences(chapter):
    """Runs of Chinese characters in a chapter's prose, without fences."""
    text = (DOCS / "zh" / f"{chapter}.md").read_text(encoding="utf-8")
    return re.findall(r"[\u4e00-\u9fff]+", re.sub(r"(?ms)^ *````?.*?^ *````?$", "", text))


@pytest.mark.parametrize(
    ("word", "chapter"), [("带宽", "start/your_gpu"), ("编号", "start/which_thread")]
)
def test_search_finds_a_chinese_word_inside_a_sentence(open_page, word, chapter):
    """Chinese has no spaces: the word is found only where the index has cut the sentence into words."""
    inside = [s for s in chinese_sentences(chapter) if word in s[2:-2] and len(s) >= len(word) + 4]
    assert inside, (
        f"docs/zh/{chapter}.md no longer has {word} inside a sentence: choose another word"
    )
    page = open_page("zh/")
    assert f"/zh/{chapter}/" in search(page, word)
    shown = page.inner_text(".md-search-result__list")
    assert word in re.sub(r"\s", "", shown)


@pytest.mark.parametrize(
    ("words", "chapter"),
    [
        ("sticky", "start/errors"),
        ("threadIdx", "start/which_thread"),
        ("warp", "start/programming_model"),
    ],
)
def test_search_finds_an_english_word(open_page, words, chapter):
    assert f"/{chapter}/" in search(open_page(), words)


# Keeps the worker that the page makes, to ask it as the field does.
KEEP_WORKER = """(() => {
  let made = window.Worker
  Object.defineProperty(window, 'Worker', {
    get: () => made,
    set: (wrapped) => { made = class extends wrapped { constructor(...a) { super(...a); window.searchWorker = this } } },
  })
})()"""
QUERY, RESULT = 2, 3  # Material's messages to the worker and from it
ASK = f"""async (all) => {{
  const worker = window.searchWorker, found = {{}}
  for (const words of all) {{
    found[words] = await new Promise((resolve) => {{
      const hear = ({{ data }}) => {{
        if (data.type !== {RESULT}) return
        worker.removeEventListener('message', hear)
        resolve(data.data.items.map((group) => group[0].location.split('#')[0]))
      }}
      worker.addEventListener('message', hear)
      worker.postMessage({{ type: {QUERY}, data: words }})
    }})
  }}
  return found
}}"""


@pytest.fixture(scope="session")
def ask(browser, site_url):
    """Ask the search of a language's pages for many words at once; the pages of each, best first."""
    context = browser.new_context()
    pages = {}

    def asked(lang, words):
        if lang not in pages:
            page = pages[lang] = context.new_page()
            page.add_init_script(KEEP_WORKER)
            page.goto(site_url + LANGS[lang])
            search(page, "warp")  # from now on the index is there
        return pages[lang].evaluate(ASK, list(words))

    yield asked
    context.close()


@pytest.mark.parametrize("lang", LANGS)
def test_each_term_finds_the_chapter_that_introduces_it(ask, lang):
    """Terms, synonyms and code words of the glossary: always among the first three, nearly always first."""
    wanted = {}
    for term in glossary.load(DOCS / "glossary.yml"):
        if term.get("chapter") in CHAPTERS:
            for words in glossary.words(term, lang):
                wanted.setdefault(words, set()).add(f"{term['chapter']}/")
    assert len(wanted) > 100
    found = ask(lang, wanted)
    missed = {
        words: found[words][:3] for words in wanted if not wanted[words] <= {*found[words][:3]}
    }
    assert not missed
    first = [words for words in wanted if found[words][0] in wanted[words]]
    assert len(first) >= 0.9 * len(wanted), sorted(wanted.keys() - set(first))


@pytest.mark.parametrize("lang", LANGS)
@pytest.mark.parametrize(
    ("words", "chapter"),
    [
        ("syncthreads", "basics/shared_memory"),
        ("coalesced", "basics/coalescing"),
        ("profile", "start/profiling"),
        ("shfl_down", "reduction/shuffles"),
        ("quantization", "gemm/tile_quantization"),
        ("quantisation", "gemm/tile_quantization"),
        ("vectorised", "gemm/vectorized"),
        ("vectorized", "gemm/vectorized"),
        ("optimisation", "start/first_optimization"),
    ],
)
def test_words_and_spellings_find_their_chapter(ask, lang, words, chapter):
    assert f"{chapter}/" in ask(lang, [words])[words][:6]


SEARCHES = yaml.safe_load((ROOT / "tests/site/searches.yml").read_text(encoding="utf-8"))


# How many of a group's questions have to find their page first; all have to find it among the first three.
FIRST = {
    ("trouble", "en"): 40,
    ("trouble", "zh"): 43,
    ("asked", "en"): 58,
    ("asked", "zh"): 58,
    ("images", "en"): 40,
    ("images", "zh"): 37,
}


@pytest.mark.parametrize(("group", "lang"), FIRST)
def test_what_readers_type_finds_the_page_that_helps(ask, group, lang):
    questions = SEARCHES[group][lang]
    wanted = {words: {f"{page}/" for page in pages} for words, pages in questions.items()}
    found = ask(lang, wanted)
    missed = {
        words: found[words][:3] for words in wanted if not wanted[words] & {*found[words][:3]}
    }
    assert not missed
    first = [words for words in wanted if found[words][0] in wanted[words]]
    assert len(first) >= FIRST[group, lang], sorted(wanted.keys() - set(first))


def test_there_are_as_many_questions_as_the_search_was_chosen_by():
    assert [len(SEARCHES["asked"][lang]) for lang in LANGS] == [66, 66]
    assert [len(SEARCHES["images"][lang]) for lang in LANGS] == [44, 42]


@pytest.mark.parametrize("lang", LANGS)
def test_pages_for_authors_are_not_found(ask, lang):
    questions = [words for group in SEARCHES.values() for words in group[lang]]
    questions += ["contributing", "写一章"]
    for words, pages in ask(lang, questions).items():
        assert "contributing/" not in pages, words


@pytest.mark.parametrize(
    "words", ["barrier branch warp", "driver toolkit version", "float4 multiple"]
)
def test_pages_that_have_all_words_come_before_others(ask, built_site, words):
    """Also before a page that introduces one of them, or has it in its title."""
    index = (built_site / "search/search_index.json").read_text(encoding="utf-8")
    texts = {}
    for entry in json.loads(index)["docs"]:
        page = entry["location"].partition("#")[0]
        texts[page] = f"{texts.get(page, '')} {entry['title']} {entry['text']}".lower()
    whole, some = set(), set()
    for page, text in texts.items():
        there = re.split(r"[^a-z0-9]+", text)
        has = [any(one.startswith(word) for one in there) for word in words.split()]
        (whole if all(has) else some).add(page)
    found = ask("en", [words])[words]
    assert len(whole & {*found}) >= 3
    assert some & {*found}
    last = max(found.index(page) for page in whole if page in found)
    assert last < len(whole), found[: last + 1]


@pytest.mark.parametrize(
    ("lang", "words", "part_of_it"), [("zh", "张量核", "张量映射"), ("zh", "首 token 延迟", "延迟")]
)
def test_a_compound_is_not_torn_apart(ask, lang, words, part_of_it):
    whole, part = ask(lang, [words, part_of_it]).values()
    assert {*part} - {*whole}


@pytest.mark.parametrize("words", ["归约", "共享内存", "线程块", "合并访问", "存储体冲突", "内存"])
def test_chinese_words_find_pages_whole_or_in_parts(ask, words):
    assert len(ask("zh", [words])[words]) >= 3


def test_a_hit_says_of_which_page_and_part_it_is_and_where_the_words_stand(open_page):
    page = open_page("zh/")
    search(page, "共享内存")
    first = page.locator(".md-search-result__item").first
    link = first.locator(".md-search-result__link").first
    link.and_(page.locator("[href*='/basics/shared_memory/?h=']")).wait_for()  # of the whole term
    assert first.locator("h1").inner_text() == "共享内存与分块 · 写出高效 kernel 的基本功"
    marked = {*page.locator(".md-search-result__list mark").all_inner_texts()} - {""}
    # The term in either language, where a part of the page has it, and nothing of what is folded.
    assert {"共享内存"} <= marked <= {"共享内存", "shared memory"}


def test_what_is_pasted_is_looked_for(open_page):
    """With the mouse, no key is released; nor where Chinese is picked from the list of an input method."""
    page = open_page("zh/")
    search(page, "warp")  # from now on the index is there
    page.locator(".md-search__input").fill("直方图")
    first = page.locator(".md-search-result__link").first
    first.and_(page.locator("[href*='/reduction/histogram/']")).wait_for()


def test_a_folk_name_finds_what_the_book_calls_otherwise(open_page):
    page = open_page("zh/")
    search(page, "银行冲突")
    assert "存储体冲突" in page.locator(".md-search-result__list mark").all_text_contents()
    with page.expect_navigation(url="**/zh/reduction/bank_conflicts/**"):
        page.keyboard.press("Enter")
    page.wait_for_selector("article mark[data-md-highlight]", state="attached")


@pytest.mark.parametrize("lang", LANGS)
def test_what_is_asked_around_a_term_does_not_hide_it(ask, lang):
    questions = ["what is a warp", *(["warp 是什么", "什么是线程束"] if lang == "zh" else [])]
    assert {pages[0] for pages in ask(lang, questions).values()} == {"start/programming_model/"}


def test_search_says_when_it_finds_nothing(open_page):
    page = open_page()
    type_into_the_search(page, "zyzzogeton")
    page.wait_for_function(
        "document.querySelector('.md-search-result__meta').innerText.includes('No match')"
    )


def test_a_search_result_opens_the_page_with_the_word_marked(open_page):
    page = open_page()
    search(page, "asynchronous")
    page.goto(
        page.locator(".md-search-result__link[href*='h=asynchronous']").first.evaluate(
            "a => a.href"
        )
    )
    page.wait_for_selector("article mark[data-md-highlight]", state="attached")


def test_the_search_index_waits_for_the_reader(open_page):
    page = open_page()
    page.wait_for_load_state("networkidle")
    loaded = "performance.getEntriesByType('resource').map((e) => e.name)"
    assert not [url for url in page.evaluate(loaded) if "/search/" in url or "/workers/" in url]
    search(page, "warp")
    assert [url for url in page.evaluate(loaded) if "search_index.json" in url]


# --- copying ---------------------------------------------------------------------------------------


CLIPBOARD = ["clipboard-read", "clipboard-write"]


def test_the_copy_button_copies_an_executed_cell(open_page, copied):
    """Without the name of the file above it and the output below it."""
    page = open_page("start/first_kernel/", permissions=CLIPBOARD)
    notebook = json.loads(recording.whole_path("start/first_kernel").read_text("utf-8"))
    sources = ["".join(c["source"]).strip() for c in notebook["cells"] if c["cell_type"] == "code"]
    block = page.locator(".ct-cell .highlight").first
    assert copied(page, block).strip() in sources


def test_the_copy_buttons_of_a_fold_copy_each_its_own(open_page, copied):
    page = open_page("start/errors/#sanitizer-deeper", permissions=CLIPBOARD)
    blocks = page.locator("details:has(> #sanitizer-deeper) .ct-cell .highlight")
    assert blocks.count() >= 2
    texts = [copied(page, blocks.nth(k)).strip() for k in range(2)]
    codes = [blocks.nth(k).locator("code").inner_text().strip() for k in range(2)]
    assert texts == codes and texts[0] != texts[1]


def test_a_prompt_is_not_copied(open_page, copied):
    for path in (f"{chapter}/" for chapter in CHAPTERS):
        text = (DOCS / "en" / f"{path[:-1]}.md").read_text(encoding="utf-8")
        if re.search(r"(?m)^ *```console\n *\$ ", text):
            break
    else:
        pytest.skip("no chapter shows a prompt")
    page = open_page(path, permissions=CLIPBOARD)
    page.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true })")
    block = page.locator("article .highlight:has(.gp)").first
    assert "$ " in block.inner_text()
    text = copied(page, block)
    assert "$ " not in text
    assert text.strip()


@pytest.mark.parametrize("lang", LANGS)
def test_eighty_columns_are_not_cut(open_page, lang):
    """In the text and in a fold, in a window of 1280 pixels, with the scroll bar that most desks have."""
    page = open_page(f"{LANGS[lang]}start/first_kernel/", width=1265)
    page.wait_for_load_state("networkidle")
    cut = page.evaluate("""async () => {
      await document.fonts.ready
      const block = document.querySelector('article .highlight:has(pre > code)')
      const fold = document.createElement('details')
      fold.open = true
      fold.innerHTML = '<summary>x</summary>'
      document.querySelector('article').append(fold)
      fold.append(block.cloneNode(true))
      return [block, fold.lastChild].map((e) => {
        const code = e.querySelector('code')
        code.textContent = '0'.repeat(80)
        return code.scrollWidth - code.clientWidth
      })
    }""")
    assert cut == [0, 0]


# --- what lies on pages beside a page ------------------------------------------------------------------


# Chapters whose own example has numbers of another GPU, and that have deferred folds; the last have the most tables.
WITH_BOTH = [
    chapter
    for chapter in reversed(CHAPTERS)
    if recording.on_other_gpus(chapter)
    and "??? note deferred" in (DOCS / "en" / f"{chapter}.md").read_text(encoding="utf-8")
]
BOTH, NEXT, *_ = (f"{chapter}/" for chapter in WITH_BOTH)
GPU = recording.on_other_gpus(WITH_BOTH[0])[0].gpu
SHORT, FOLDER = GPU.removeprefix("NVIDIA "), recording.gpu_folder(GPU)
CHART = ".ct-gpus:visible"
CHOSEN = """(gpu) => [...document.querySelectorAll('.ct-gpus input')].filter((i) => i.value === gpu).every((i) => i.checked)"""
WAITS = "document.querySelectorAll('[data-deferred]').length"
GPU_WAITS = "document.querySelectorAll('.ct-gpu > [data-deferred]').length"
SAID = "document.querySelector('.ct-deferred__status').textContent"


def choose(page, gpu=GPU):
    page.locator(f"{CHART} input[value='{gpu}']").first.click()


@pytest.mark.parametrize("lang", LANGS)
def test_another_gpus_numbers_come_when_it_is_chosen_and_once(open_page, site_url, lang):
    path = f"{LANGS[lang]}{BOTH}"
    page = open_page(path)
    page.wait_for_load_state("networkidle")
    asked = []
    page.on("request", lambda r: asked.append(r.url) if r.resource_type == "fetch" else None)
    assert page.evaluate(GPU_WAITS) > 5
    here = page.locator(f"{CHART} > .ct-gpu:visible").first
    before = here.inner_text()
    choose(page)
    page.wait_for_function(CHOSEN, arg=GPU)
    assert asked == [f"{site_url}{path}{FOLDER}/"]
    assert page.evaluate(GPU_WAITS) == 0
    after = page.locator(f"{CHART} > .ct-gpu:visible").first
    assert after.get_attribute("aria-label") == SHORT and SHORT in after.inner_text()
    # For those who do not see it.
    page.wait_for_function(f"{SAID}.includes('{SHORT}')")
    choose(page, page.locator(f"{CHART} input").first.get_attribute("value"))
    assert page.locator(f"{CHART} > .ct-gpu:visible").first.inner_text() == before
    choose(page)
    page.wait_for_function(CHOSEN, arg=GPU)
    assert len(asked) == 1
    # The next page has it chosen, also in what a fold brings.
    page.goto(f"{site_url}{LANGS[lang]}{NEXT}")
    page.wait_for_function(CHOSEN, arg=GPU)
    page.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true })")
    page.wait_for_function(f"{WAITS} === 0")
    page.wait_for_function(CHOSEN, arg=GPU)


def test_a_sentence_that_the_chosen_gpu_contradicts_says_so(open_page):
    page = open_page(BOTH)
    page.evaluate(
        """(gpu) => document.querySelector("article p").insertAdjacentHTML("beforeend",
        `<span class="ct-not-so" data-gpu="${gpu}" hidden>(not so)</span><span class="ct-not-so" data-gpu="Z1" hidden>(no)</span>`)""",
        GPU,
    )
    mark, another = (
        page.locator(".ct-not-so >> text=(not so)"),
        page.locator(".ct-not-so >> text=(no)"),
    )
    assert not mark.is_visible()
    choose(page)
    mark.wait_for(state="visible")
    assert not another.is_visible()
    choose(page, page.locator(f"{CHART} input").first.get_attribute("value"))
    mark.wait_for(state="hidden")


@pytest.mark.parametrize("lang", LANGS)
def test_without_scripts_a_link_leads_to_the_other_gpus_numbers(open_page, lang):
    page = open_page(f"{LANGS[lang]}{BOTH}", java_script_enabled=False)
    choose(page)
    follow(page.locator(f"{CHART} .ct-deferred a:visible").first)
    assert page.url.partition("#")[0].endswith(f"{BOTH}{FOLDER}/")
    assert page.locator(page.url[page.url.index("#") :]).count() == 1
    assert SHORT in page.inner_text("article h1")
    charts = page.locator("article figure.ct-bench, article .ct-table caption")
    assert charts.count() > 3 and page.locator("[data-deferred]").count() == 0
    assert all(SHORT in one for one in page.locator("article figcaption").all_inner_texts())
    # Where they were measured, and the way back.
    assert page.locator(".ct-certificate").count() == 1
    follow(page.locator("article h1 + p a"))
    assert page.url.endswith(BOTH)


def test_what_cannot_be_loaded_says_so_and_is_tried_again(open_page):
    page = open_page(BOTH)
    tries = []

    def refuse(route):
        tries.append(route.request.url)
        route.abort() if len(tries) == 1 else route.fulfill(status=503)

    for part in (FOLDER, "folds"):
        page.context.route(f"**/{part}/", refuse)
        tries.clear()
        if part == "folds":
            page.locator("details.deferred > summary:visible").first.click()
            place = page.locator("details.deferred").first
        else:
            choose(page)
            place = page.locator(CHART).first
        told = place.locator(".ct-deferred__failed:visible")
        told.wait_for()
        assert "could not be loaded" in told.inner_text()
        assert "could not be loaded" in page.evaluate(SAID)
        assert place.locator("a:visible[href*='/#']").count() >= 1
        with page.expect_response(f"**/{part}/"):  # it answers, but not with the page
            told.locator("button").click()
        told.wait_for()
        assert len(tries) == 2
        page.context.unroute(f"**/{part}/")
        told.locator("button").click()
        # The sentence goes at once, what is asked for comes when it has been loaded.
        place.locator("figure:visible, pre:visible, table:visible").first.wait_for()
        assert told.count() == 0


def test_a_page_beside_that_is_of_another_build_is_not_shown(open_page):
    """Its parts have other ids: better no chart than that of another text."""
    page = open_page(BOTH)
    other = '<div data-part="00000000"><p>older</p></div>'
    page.context.route(
        f"**/{FOLDER}/", lambda r: r.fulfill(status=200, content_type="text/html", body=other)
    )
    choose(page)
    page.locator(f"{CHART} .ct-deferred__failed:visible").first.wait_for()
    assert "older" not in page.inner_text("article")


@pytest.mark.parametrize("lang", LANGS)
def test_a_deferred_fold_comes_when_it_is_opened(open_page, copied, lang):
    page = open_page(
        f"{LANGS[lang]}tensor/scoreboard/", permissions=["clipboard-read", "clipboard-write"]
    )
    fold = page.locator("details.deferred", has=page.locator("pre")).first
    shut = page.locator("details.deferred").first
    assert shut.locator("pre, figure").count() == 0
    shut.locator("summary").click()
    fold.locator("pre").first.wait_for()
    code = fold.locator("pre > code")
    assert code.count() > 1
    for block in fold.locator(".highlight").all():  # each its own
        assert copied(page, block).rstrip() == block.locator("code").inner_text().rstrip()


def test_links_in_a_deferred_fold_lead_where_they_lead_on_the_page_beside(
    open_page, built_site, site_url
):
    page = open_page("tensor/clusters/")
    page.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true })")
    page.wait_for_function("!document.querySelector('details > [data-deferred]')")
    links = page.locator("details.deferred a[href]:not(.headerlink)")
    found = links.evaluate_all("all => all.map((a) => [a.getAttribute('href'), a.href])")
    inside = [href for _, href in found if href.startswith(site_url)]
    assert len(inside) > 5 and "#predict" in dict(found)  # of the chapter itself
    for href in inside:
        file = built_site / urlsplit(href).path.lstrip("/")
        assert (file / "index.html" if file.is_dir() else file).is_file(), href


def test_a_link_to_what_a_deferred_fold_holds_opens_it_there(open_page):
    page = open_page("tensor/scoreboard/")
    inside = page.locator("details.deferred [data-deferred] span[id]").evaluate_all(
        "all => all.map((e) => e.id)"
    )
    assert inside
    page = open_page(f"tensor/scoreboard/#{inside[-1]}")
    page.wait_for_function(
        "(id) => document.getElementById(id)?.matches('summary')", arg=inside[-1]
    )
    assert page.evaluate("(id) => document.getElementById(id).closest('details').open", inside[-1])
    page.wait_for_function(
        "(id) => { const y = document.getElementById(id).getBoundingClientRect().top; return y >= 0 && y < innerHeight }",
        arg=inside[-1],
    )


def test_a_hit_of_the_search_inside_a_deferred_fold_is_seen(open_page):
    page = open_page("tensor/scoreboard/")
    asked = []

    def slowly(route):
        page.wait_for_timeout(1000)
        asked.append("folds")
        route.continue_()

    page.context.route("**/folds/", slowly)
    page.on("request", lambda r: asked.append("index") if "search_index" in r.url else None)
    page.goto(page.url + "?h=prefetch#kernel")
    page.wait_for_function(
        "[...document.querySelectorAll('mark')].some((m) => m.checkVisibility() && /prefetch/i.test(m.textContent))"
    )
    assert page.evaluate("document.querySelector('mark').closest('details.deferred').open")
    # Words are marked in what is open when the index comes.
    assert asked == ["folds", "index"]


def test_paper_and_the_browsers_search_get_what_deferred_folds_hold(open_page):
    page = open_page("tensor/scoreboard/")
    folds = "document.querySelectorAll('details.deferred > [data-deferred]').length"
    assert page.evaluate(folds) > 1
    page.pdf()
    assert page.evaluate(folds) == 0
    page = open_page("tensor/scoreboard/")
    page.keyboard.press("Control+f")
    page.wait_for_function(f"{folds} === 0")


def test_paper_has_only_the_numbers_that_are_there_each_with_its_gpu(open_page):
    page = open_page(BOTH)
    page.evaluate("dispatchEvent(new Event('beforeprint'))")  # what folds hold comes with it
    page.emulate_media(media="print")
    panes = page.locator(".ct-gpu")
    shown = [one for one in panes.all() if one.is_visible()]
    own = shown[0].get_attribute("aria-label")
    assert {one.get_attribute("aria-label") for one in shown} == {own}
    assert own in shown[0].inner_text() and not page.locator(".ct-deferred:visible").count()


# --- what a visit weighs -------------------------------------------------------------------------------

# A laptop's. Pictures that stand in it are part of a first visit; those below it wait (docs/theme/js/pictures.js).
FIRST_WINDOW = {"width": 1280, "height": 720}


def weight_of_visit(page, built_site, site_url, go):
    """Bytes of all files that a browser with an empty cache asks for, compressed as hosts do it."""
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    go()
    page.wait_for_load_state("networkidle")
    page.wait_for_timeout(300)  # what a page asks for when it is idle counts as well
    size = 0
    for url in dict.fromkeys(url.partition("#")[0] for url in asked if url.startswith(site_url)):
        file = built_site / urlsplit(url).path.lstrip("/")
        data = (file / "index.html" if file.is_dir() else file).read_bytes()
        size += len(data) if file.suffix == ".woff2" else len(gzip.compress(data, 6))
    return size


WITH_PICTURES = ["start/picture", *(one for one in CHAPTERS if one.startswith("images/"))]


@pytest.mark.parametrize("lang", LANGS)
@pytest.mark.parametrize("path", ["", "heaviest", *WITH_PICTURES])
def test_a_first_visit_weighs_at_most_150_kb(browser, built_site, site_url, lang, path):
    home = built_site / LANGS[lang]
    if path == "heaviest":
        path = max(CHAPTERS, key=lambda one: zipped(home / one / "index.html"))
    context = browser.new_context(viewport=FIRST_WINDOW)
    page = context.new_page()
    url = f"{site_url}{LANGS[lang]}{path and f'{path}/'}"
    size = weight_of_visit(page, built_site, site_url, lambda: page.goto(url))
    context.close()
    assert size <= 150 * 1024, f"{url}: {size / 1024:.1f} KB"


def test_all_chapters_with_pictures_are_weighed(built_site):
    shown = {one for one in CHAPTERS if "/pictures/" in read_html(built_site, one)}
    assert shown and shown <= set(WITH_PICTURES)


def read_html(site, chapter):
    return (site / chapter / "index.html").read_text(encoding="utf-8")


def zipped(path):
    return len(gzip.compress(path.read_bytes(), 1))


# --- what jumps, and what explains itself --------------------------------------------------------------


PHONE = {"viewport": {"width": 390, "height": 844}, "is_mobile": True}
DESK = {"viewport": {"width": 1280, "height": 900}}


@pytest.mark.parametrize(
    ("path", "screen", "gpu"),
    [
        *((path, PHONE, None) for path in ("", "start/first_kernel/", "zh/", "zh/start/first_kernel/")),
        *((path, DESK, None) for path in ("", "zh/tensor/scoreboard/")),
        # A GPU that was chosen on an earlier page: its charts come late.
        *((path, screen, GPU) for path in (BOTH, f"zh/{NEXT}") for screen in (PHONE, DESK)),
    ],
)  # fmt: skip
def test_nothing_jumps_when_what_a_page_needs_comes_late(browser, site_url, path, screen, gpu):
    context = browser.new_context(**screen)
    if gpu:
        context.add_init_script(f"localStorage.setItem('cudatut-gpu', '{gpu}')")
    page = context.new_page()
    page.add_init_script("""window.shifted = 0
      new PerformanceObserver((list) => {
        for (const entry of list.getEntries()) if (!entry.hadRecentInput) window.shifted += entry.value
      }).observe({type: 'layout-shift', buffered: true})""")
    tools = context.new_cdp_session(page)
    tools.send("Network.enable")
    slow = {"offline": False, "latency": 150, "downloadThroughput": 2e5, "uploadThroughput": 9e4}
    tools.send("Network.emulateNetworkConditions", slow)
    page.goto(site_url + path, wait_until="networkidle")
    shifted = page.evaluate("window.shifted")
    context.close()
    assert shifted <= 0.1


@pytest.mark.parametrize("lang", LANGS)
def test_terms_explain_themselves(open_page, lang):
    """Definitions of the glossary stand at the first use of a term, reachable with the keyboard."""
    page = open_page(f"{LANGS[lang]}start/programming_model/")
    found = page.eval_on_selector_all(
        "a.ct-term", "all => all.map((a) => [a.getAttribute('href'), a.title, a.tabIndex])"
    )
    assert len(found) >= 5
    assert len({href for href, _, _ in found}) == len(found)
    means = {
        term["id"]: term["means"][lang].replace("`", "")
        for term in glossary.load(DOCS / "glossary.yml")
    }
    for href, title, tab in found:
        assert title == means[href.partition("#")[2]]
        assert tab == 0
    assert page.locator(":is(h1, h2, h3, pre, code, svg) a.ct-term").count() == 0
    page.goto(page.evaluate("document.querySelector('a.ct-term').href"))
    assert page.evaluate("document.querySelector(location.hash).matches('h2')")


# --- keyboard and paper ------------------------------------------------------------------------------


def test_what_has_the_focus_shows_it(open_page):
    page = open_page("start/first_optimization/")
    unseen = []
    for _ in range(60):
        page.keyboard.press("Tab")
        unseen.append(
            page.evaluate("""() => {
              const e = document.activeElement, c = getComputedStyle(e)
              if (e === document.body || e.matches('input')) return null
              const shown = c.outlineStyle !== 'none' && parseFloat(c.outlineWidth) > 0
              return shown || !e.checkVisibility({visibilityProperty: true}) ? null : e.outerHTML.slice(0, 120)
            }""")
        )
    assert not [found for found in unseen if found]


def test_boxes_that_scroll_can_be_reached_with_the_keyboard(open_page):
    page = open_page("start/first_optimization/", width=390)
    unreachable = page.evaluate("""[...document.querySelectorAll('.ct-scroll, pre.ct-output')]
      .filter((e) => e.checkVisibility() && e.scrollWidth > e.clientWidth && e.tabIndex < 0).length""")
    assert unreachable == 0


def test_escape_closes_the_search(open_page):
    page = open_page()
    type_into_the_search(page, "")
    page.keyboard.press("Escape")
    page.wait_for_function(f"!{IN_THE_FIELD}")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_paper_gets_the_chapter_and_nothing_around_it(open_page, contrast, scheme):
    page = open_page("start/first_optimization/", scheme=scheme)
    page.emulate_media(media="print")
    for selector in (".md-header", ".md-sidebar", ".md-footer", ".md-code__nav", ".md-clipboard"):
        for element in page.locator(selector).all():
            assert not element.is_visible(), selector
    style = page.evaluate("""() => {
      const css = (s) => getComputedStyle(document.querySelector(s))
      return {ink: css('article p:not([class])').color, ground: css('body').backgroundColor, wrap: css('pre > code').whiteSpace,
        link: getComputedStyle(document.querySelector('article a[href^="http"]'), '::after').content}
    }""")
    assert style["ink"] == "rgb(0, 0, 0)"
    assert style["ground"] in ("rgb(255, 255, 255)", "rgba(0, 0, 0, 0)")
    assert style["wrap"] in ("pre-wrap", "break-spaces")
    assert "http" in style["link"]
    assert page.evaluate(contrast, True)["found"] == []
    # What may be longer than a page is broken; kept whole, it leaves half pages empty.
    whole = page.evaluate("""[...document.querySelectorAll('article :is(pre, .highlight, details, figure, table, .ct-cell)')]
      .filter((e) => getComputedStyle(e).breakInside !== 'auto').length""")
    assert whole == 0
    # What is folded on the screen is open on paper, but for answers and solutions.
    closed = page.evaluate("""[...document.querySelectorAll('article details:not([open])')]
      .filter((d) => !d.closest('.success') && ![...d.children].slice(1).some((e) => e.getBoundingClientRect().height > 0)).length""")
    assert closed == 0
    told = """[...document.querySelectorAll('article details.success')]
      .map((d) => [...d.children].slice(1).some((e) => e.checkVisibility({contentVisibilityAuto: true})))"""
    page.emulate_media(media="print")
    assert (found := page.evaluate(told)) and not any(found)
    # One that the reader has opened is meant to be printed.
    page.evaluate("document.querySelector('article details.success').open = true")
    page.wait_for_function(f"({told}).filter(Boolean).length === 1")
    assert page.evaluate(told)[0]


def test_a_page_that_is_none_answers_in_both_languages(open_page, site_url):
    page = open_page("start/no_such_chapter/")
    text = page.inner_text("article, .md-content")
    assert "does not exist" in text
    assert "没有这个页面" in text
    links = page.eval_on_selector_all(".md-content a[href]", "all => all.map((a) => a.href)")
    assert {site_url, f"{site_url}zh/"} <= set(links)
    assert page.evaluate("getComputedStyle(document.body).fontFamily").startswith('"Source Sans 3"')
