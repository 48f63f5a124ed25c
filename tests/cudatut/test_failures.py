"""Why an example could not be recorded here is kept, and forgotten once it could."""

from cudatut import failures


def test_a_reason_is_kept_and_forgotten(tmp_path, monkeypatch):
    monkeypatch.setenv("CUDATUT_RECORDINGS", str(tmp_path))
    assert failures.reason("a/b") is None and failures.names() == []
    failures.keep("a/b", "cell 'x': raised\n")
    assert failures.reason("a/b") == "cell 'x': raised"
    assert failures.names() == ["a/b"]
    assert [path.name for path in tmp_path.iterdir()] == [".failed"]
    failures.forget("a/b")
    failures.forget("a/b")
    assert failures.names() == []


def test_a_folder_that_cannot_be_written_stops_nobody(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("CUDATUT_RECORDINGS", str(tmp_path / "file"))
    failures.keep("a/b", "reason")
    assert failures.reason("a/b") is None
