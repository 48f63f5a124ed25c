"""Tables that somebody typed into a page: heads, and rows with the numbers of their lines."""

from cudatut.site.tables import tables


def test_a_row_with_a_head_of_its_own_is_a_row():
    html = "<table><tr><th>n</th><th>GB/s</th></tr>\n<tr><th>one</th><td>5</td></tr></table>"
    assert list(tables(html)) == [([], []), (["n", "GB/s"], [(2, ["one", "5"])])]
