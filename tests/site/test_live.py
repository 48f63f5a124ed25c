"""`build --live`: an example that failed on this machine costs its own outputs, and the page says why."""

import dataclasses

import pytest

from cudatut import failures
from cudatut.site import __main__ as site
from cudatut.site import directives, missing, references, state

NAME = "start/first_kernel"


@pytest.fixture
def build(monkeypatch):
    def begin(mode):
        found = state.State(lang="en", mode=mode)
        monkeypatch.setattr(state, "_state", found)
        return found

    return begin


def test_the_reason_stands_in_the_place_of_the_output(build, monkeypatch):
    monkeypatch.setattr(failures, "reason", lambda name: "cell 'check': element 3 is <wrong>")
    live = build("live")
    html = directives.render(f"{NAME}#program")
    assert "numpy" in html
    assert "element 3 is &lt;wrong&gt;" in html and "ct-missing" in html
    text = references.replace(f'It takes {{{{ {NAME}#look["x"].median_us }}}} µs.', live.report)
    assert "{{" not in text and "ct-missing" in text
    assert live.problems == []


def test_a_strict_build_does_not_look_at_reasons(build, monkeypatch):
    monkeypatch.setattr(failures, "reason", lambda name: "it failed here")
    assert not isinstance(build("strict").record(NAME), missing.StandIn)


def test_a_preview_shows_what_is_not_recorded(build, monkeypatch):
    from cudatut import recording

    def stale(name):
        raise recording.UnfitRecordingError(f"{name} is stale")

    monkeypatch.setattr(recording, "require_good", stale)
    found = build("preview").record(NAME)
    assert isinstance(found, missing.StandIn) and "stale" in found.reason
    with pytest.raises(missing.MissingOutputError, match="stale"):
        found.results("program")
    with pytest.raises(recording.UnfitRecordingError):
        build("strict").record(NAME)


def test_a_stand_in_has_the_cells_of_the_file():
    record = missing.stand_in(NAME, "because")
    assert dataclasses.is_dataclass(record)
    assert "program" in [cell.title for cell in record.cells]
    assert all(not cell.outputs for cell in record.cells)


@pytest.mark.parametrize(("names", "status"), [([], 0), ([NAME], 1)])
def test_the_command_builds_all_pages_names_what_failed_and_exits_with_it(
    names, status, monkeypatch, tmp_path, capsys
):
    monkeypatch.setattr(failures, "names", lambda: names)
    monkeypatch.setattr(failures, "reason", lambda name: "it raised")
    modes = []
    monkeypatch.setattr(site, "build", lambda root, out, mode: modes.append(mode))
    assert site.main(["build", "--live", "--out", str(tmp_path)]) == status
    assert modes == ["live"]
    assert capsys.readouterr().err == "".join(
        f"without the outputs of {n}: it raised\n" for n in names
    )
    assert site.main(["build", "--out", str(tmp_path)]) == 0
    assert modes[-1] == "strict"


def test_a_preview_prints_what_the_build_warns_of(monkeypatch, tmp_path, capsys):
    warned = [f"docs/en/{NAME}.md: {what}" for what in ("one", "two")]
    monkeypatch.setattr(site, "build", lambda *_: warned)
    assert site.main(["preview", NAME, "--out", str(tmp_path)]) == 0
    _, *said, end = capsys.readouterr().out.splitlines()
    assert said == warned and end.startswith("Nothing to mend")
