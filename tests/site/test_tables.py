"""Tables that somebody typed into a page: heads, and rows with the numbers of their lines."""

from cudatut.site.tables import tables


def test_a_row_with_a_head_of_its_own_is_a_row():
    html = "<table><tr><th>n</th><th>GB/s</th></tr>\n<tr><th>one</th><td>5</td></tr></table>"
    assert list(tables(html)) == [([], []), (["n", "GB/s"], [(2, ["one", "5"])])]


def test_a_table_ends_where_the_page_ends():
    page = "| n | GB/s |\n|---|---|\n| one | 5 |"
    assert list(tables(page)) == [(["n", "GB/s"], [(3, ["one", "5"])])]
