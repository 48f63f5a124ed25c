"""Files that are written whole or not at all."""

import os

import pytest

from cudatut.files import write_new, write_whole


def test_a_file_is_replaced_in_one_step(tmp_path):
    path = tmp_path / "a.txt"
    for raw in (b"one", b"two"):
        write_whole(path, raw)
        assert path.read_bytes() == raw
    assert os.listdir(tmp_path) == ["a.txt"], "nothing else is left"


@pytest.mark.parametrize("links", [True, False])
def test_a_new_file_is_new(tmp_path, monkeypatch, links):
    """With hard links, and on a file system that has none."""
    if not links:
        monkeypatch.setattr(os, "link", refuse)
    path = tmp_path / "a.txt"
    write_new(path, b"one")
    assert path.read_bytes() == b"one"
    with pytest.raises(FileExistsError):
        write_new(path, b"two")
    assert path.read_bytes() == b"one" and os.listdir(tmp_path) == ["a.txt"]


def refuse(*_):
    raise OSError("no links here")
