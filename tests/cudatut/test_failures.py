"""Why an example could not be recorded here is kept beside it, and forgotten once it could."""

from cudatut import failures


def test_a_reason_is_kept_and_forgotten(tmp_path, monkeypatch):
    monkeypatch.setenv("CUDATUT_EXAMPLES", str(tmp_path))
    (tmp_path / "a").mkdir()
    assert failures.reason("a/b") is None and failures.names() == []
    failures.keep("a/b", "cell 'x': raised\n")
    assert failures.reason("a/b") == "cell 'x': raised"
    assert failures.names() == ["a/b"]
    failures.forget("a/b")
    failures.forget("a/b")
    assert failures.names() == []


def test_a_folder_that_cannot_be_written_stops_nobody(tmp_path, monkeypatch):
    monkeypatch.setenv("CUDATUT_EXAMPLES", str(tmp_path / "gone"))
    failures.keep("a/b", "reason")
    assert failures.reason("a/b") is None
