"""Tables that somebody typed into a page: heads, and rows with the numbers of their lines."""

from cudatut.site.tables import tables, with_units


def test_a_row_with_a_head_of_its_own_is_a_row():
    html = "<table><tr><th>n</th><th>GB/s</th></tr>\n<tr><th>one</th><td>5</td></tr></table>"
    assert list(tables(html)) == [([], []), (["n", "GB/s"], [(2, ["one", "5"])])]


def test_a_table_ends_where_the_page_ends():
    page = "| n | GB/s |\n|---|---|\n| one | 5 |"
    assert list(tables(page)) == [(["n", "GB/s"], [(3, ["one", "5"])])]


def test_tables_of_markdown_have_their_heads_their_lines_and_an_end():
    page = (
        "a | b\n\n> | n | `x` \\| y |\n> | :-: | ---: |\n> | one | 5 |\n> | two | 6 |\nend\n"
        "| p |\n|---|\n| 1 |\n```text\n| no |\n|---|\n```\nwords\n|---|\n| q |\n"
    )
    found = list(tables(page))
    assert [rows for _, rows in found] == [[(5, ["one", "5"]), (6, ["two", "6"])], [(10, ["1"])]]
    assert found[0][0][0] == "n" and found[0][0][1].endswith(r"\| y") and found[1][0] == ["p"]


def test_tables_of_html_have_a_head_where_all_cells_are_of_heads():
    html = "x\n<TABLE>\n<tr><td>0</td>\n<tr><th>a</th><th>b</th></tr>\n<tr>\n<td>1<td>2</table>"
    assert list(tables(html)) == [
        ([], [(3, ["0"])]),
        (["a", "b"], [(5, ["1", "2"])]),
    ]
    assert list(tables("<tr><td>1</td></tr>")) == []


def test_a_unit_stands_in_the_head():
    assert list(with_units(" 5 ", "time, one call (ms)")) == [
        "5 time, one call (ms", "5 one call", "5 ms"
    ]  # fmt: skip
    assert list(with_units("5", "时间（毫秒）")) == ["5 时间（毫秒", "5 毫秒"]
