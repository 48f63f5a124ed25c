"""A chapter in progress (`written: draft`): its page is not built, and nothing links to it."""

from cudatut.site import contents

CONTENTS = """parts:
  - id: one
    level: {en: a, zh: b}
    title: {en: a, zh: b}
    about: {en: a, zh: b}
    chapters:
      - {id: done, title: {en: a, zh: b}, written: true}
      - {id: soon, title: {en: c, zh: d}, written: draft}
"""


def test_a_draft_is_not_in_the_navigation_and_links_to_it_become_text(tmp_path):
    (tmp_path / "contents.yml").write_text(CONTENTS)
    parts = contents.load(tmp_path / "contents.yml")
    assert "one/soon.md" not in str(contents.nav(parts, "en"))
    text = "See [soon](soon.md#x), [done](done.md) and ![soon](soon.md), [far](../one/soon.md)."
    assert (
        contents.unlink_drafts(text, "one/done.md", parts)
        == "See soon, [done](done.md) and ![soon](soon.md), far."
    )


def test_a_preview_shows_the_chapters_named_also_a_draft(project, monkeypatch):
    project.contents([("add", "draft"), ("later", True)])
    project.page("start/later.md", "# Later { #top }\n", "zh")
    project.body("[之后](later.md)、[说法](../claims.md)、[术语表](../glossary.md)", "zh")
    monkeypatch.setenv("CUDATUT_SITE_MODE", "preview")
    monkeypatch.setenv("CUDATUT_SITE_ONLY", "start/add")
    built = project.build("zh")
    page = (built / "start/add/index.html").read_text(encoding="utf-8")
    assert '之后、说法、<a href="../../glossary/">术语表</a>' in page
    assert (built / "examples/start/add/index.html").is_file()
    assert not (built / "start/later").exists() and not (built / "claims").exists()
