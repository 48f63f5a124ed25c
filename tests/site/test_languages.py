"""The same page in the other language: links that hold at any base path, and whole addresses where the site's is known."""

import pytest

from cudatut.site import languages


@pytest.mark.parametrize(
    ("url", "lang", "links"),
    [
        (".", "en", ["./", "zh/"]),
        ("./", "zh", ["../", "./"]),
        ("start/add/", "en", ["./", "../../zh/start/add/"]),
        ("start/add/", "zh", ["../../../start/add/", "./"]),
    ],
)
def test_both_languages_of_a_page(url, lang, links):
    found = languages.switch(url, lang)
    assert [(one["name"], one["lang"]) for one in found] == [("English", "en"), ("中文", "zh")]
    assert [one["link"] for one in found] == [one["href"] for one in found] == links


@pytest.mark.parametrize("site", ["https://example.org/book", "https://example.org/book/"])
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_search_engines_get_whole_addresses(site, lang):
    english, chinese = languages.switch("a/b/", lang, site)
    assert english["href"] == "https://example.org/book/a/b/"
    assert chinese["href"] == "https://example.org/book/zh/a/b/"
    assert english["link"] == {"en": "./", "zh": "../../../a/b/"}[lang]
    assert languages.switch("./", lang, site)[1]["href"] == "https://example.org/book/zh/"


@pytest.mark.parametrize(
    ("root", "lang", "links"),
    [
        ("/", "en", ["/", "/zh/"]),
        ("/zh", "zh", ["/", "/zh/"]),
        ("/book/zh/", "zh", ["/book/", "/book/zh/"]),
        ("/zh/", "en", ["/zh/", "/zh/zh/"]),  # an English site that lies in a folder of this name
    ],
)
def test_both_landing_pages(root, lang, links):
    found = languages.switch_from_root(root, lang)
    assert found == [
        {"name": name, "lang": other, "link": link, "href": link}
        for (other, name), link in zip(languages.NAMES.items(), links, strict=True)
    ]
