"""Which pages the table of contents keeps out of a site."""

from cudatut.site import contents, state


def test_a_preview_of_a_chapter_needs_its_glossary_and_the_page_on_the_book():
    assert contents.left_out(()) == set()
    before = state.current()
    state.begin(state.State(only=("start/add",)))
    try:
        found = contents.left_out(())
    finally:
        state.begin(before)
    assert found == {f"{page}.md" for page in ("claims", "examples", "api", "contributing")}
