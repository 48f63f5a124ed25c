"""`build --serve` and `serve`: a port that is taken, a reader who leaves, Ctrl-C."""

import os
import signal
import socket
import struct
import subprocess
import sys
import time
import urllib.error
import urllib.request
from functools import partial
from pathlib import Path
from threading import Thread

import pytest

from cudatut import paths, recording
from cudatut.site import __main__ as site
from cudatut.site import serving

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "index.html").write_text("x" * 5_000_000)
    return tmp_path


def test_a_port_that_is_taken_is_noticed_before_the_build(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(site, "build", lambda *_: pytest.fail("it was built"))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert site.main(["build", "--serve", "--port", port, "--out", str(tmp_path)]) == 1
    assert f"cannot listen on 127.0.0.1:{port}" in capsys.readouterr().err


def test_an_impossible_port_is_refused_in_a_sentence(tmp_path):
    with pytest.raises(serving.ServeError, match="--port"):
        site.server(tmp_path, 70_000)


def test_a_reader_who_leaves_early_prints_nothing(folder, capfd):
    with site.server(folder, 0) as server:
        server.daemon_threads = False  # they are waited for at the end
        Thread(target=server.serve_forever, daemon=True).start()
        for _ in range(3):
            with socket.create_connection(("127.0.0.1", server.server_port)) as client:
                client.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
                client.recv(100)
                # Closing resets the connection while most of the page is still to be sent.
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        server.shutdown()
    assert capfd.readouterr().err == ""


def test_another_error_is_still_printed(folder, capfd):
    with site.server(folder, 0) as server:
        try:
            raise ValueError("a fault of ours")
        except ValueError:
            server.handle_error(None, ("127.0.0.1", 1))
    assert "a fault of ours" in capfd.readouterr().err


def test_what_hosts_do_not_show_is_not_found(folder, capfd):
    """A folder without an index.html, and an address with a NUL, are answered with the site's own page."""
    (folder / "404.html").write_text("<h1>100% lost</h1>")
    (folder / "examples" / "start").mkdir(parents=True)
    (folder / "examples" / "start" / "hello.py").write_text("print(1)")
    with site.server(folder, 0) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        for path in ("/examples/start/", "/%00", "/nothing"):
            with pytest.raises(urllib.error.HTTPError) as caught:
                urllib.request.urlopen(f"http://127.0.0.1:{server.server_port}{path}")
            assert caught.value.code == 404 and "100% lost" in caught.value.read().decode(), path
        file = f"http://127.0.0.1:{server.server_port}/examples/start/hello.py"
        assert urllib.request.urlopen(file).read() == b"print(1)"
        server.shutdown()
    assert capfd.readouterr().err == ""


def test_who_sends_a_form_is_told_why_it_is_refused(folder):
    with site.server(folder, 0) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        with pytest.raises(urllib.error.HTTPError) as caught:
            urllib.request.urlopen(f"http://127.0.0.1:{server.server_port}/", data=b"x=1")
        server.shutdown()
    assert (caught.value.code, caught.value.reason) == (501, "Unsupported method ('POST')")


@pytest.mark.skipif(os.name == "nt", reason="signals are another matter there")
def test_ctrl_c_ends_it_without_a_traceback(folder):
    process = subprocess.Popen(
        [sys.executable, "-m", "cudatut.site", "serve", "--out", str(folder), "--port", "0"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        # These tests may run in the background of a shell, which has its children ignore Ctrl-C.
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
    )
    assert "http://127.0.0.1:" in process.stdout.readline()
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=300)
    assert process.returncode == 0
    assert err == ""


def test_ctrl_c_during_a_build(monkeypatch, tmp_path, capsys):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(site, "build", interrupted)
    assert site.main(["build", "--out", str(tmp_path)]) == 130
    assert capsys.readouterr().err.strip() == "Interrupted."


def test_what_a_terminal_cannot_show_ends_nothing(monkeypatch):
    """A Chinese title on a terminal of ASCII."""
    from types import SimpleNamespace

    asked = []
    for name in ("stdout", "stderr"):
        stream = SimpleNamespace(reconfigure=lambda **how: asked.append(how), write=len, flush=int)
        monkeypatch.setattr("sys." + name, stream)
    with pytest.raises(SystemExit):
        site.main(["--help"])
    assert asked == [{"encoding": "utf-8", "errors": "replace"}] * 2


# --- a preview that reloads ------------------------------------------------------------------------


def answer(server, path):
    with urllib.request.urlopen(f"http://127.0.0.1:{server.server_port}{path}") as found:
        return found.read().decode()


def test_a_preview_is_built_again_when_a_file_changes_and_its_pages_ask_for_it(tmp_path, capsys):
    """A build that fails is no new site; a file that comes or goes is a change, too."""
    page, seen = tmp_path / "page.md", []
    (tmp_path / "index.html").write_text("<body>old</body>")
    works = {"now": True}

    def build():
        text = page.read_text() if page.is_file() else "none"
        seen.append(text)
        (tmp_path / "index.html").write_text(f"<body>{text}</body>")
        return works["now"]

    def until(count):
        for _ in range(400):
            if len(seen) >= count and server.builds + (not works["now"]) >= count:
                return
            time.sleep(0.02)
        pytest.fail(f"built {seen}")

    with site.server(tmp_path, 0, serving.Reloading) as server:
        asked = {"end": False}

        def files():
            if asked["end"]:
                raise KeyboardInterrupt
            return [page]

        watching = Thread(target=serving.watch, args=(server, "a/b/", build, files), daemon=True)
        watching.start()
        until(1)
        assert answer(server, "/_built") == "1" and answer(server, "/").startswith(
            "<body>none<script>"
        )
        page.write_text("one")
        until(2)
        assert (
            "<body>one<script>" in answer(server, "/index.html")
            and answer(server, "/_built") == "2"
        )
        works["now"] = False
        page.write_text("broken")
        until(3)
        assert answer(server, "/_built") == "2"
        asked["end"] = True  # Ctrl-C
        watching.join(timeout=120)
        assert not watching.is_alive()
    assert seen == ["none", "one", "broken"]
    assert f"English  http://127.0.0.1:{server.server_port}/a/b/\n" in capsys.readouterr().out


def test_only_pages_reload(folder):
    (folder / "a.js").write_text("</body>")
    with site.server(folder, 0, serving.Reloading) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        assert answer(server, "/a.js") == "</body>"
        with pytest.raises(urllib.error.HTTPError):
            answer(server, "/nothing/")
        server.shutdown()
    with site.server(folder, 0) as server:  # what is built for readers asks for nothing
        Thread(target=server.serve_forever, daemon=True).start()
        (folder / "index.html").write_text("<body></body>")
        assert answer(server, "/") == "<body></body>"
        server.shutdown()


def test_a_page_asks_once_and_a_browser_keeps_none_of_it(folder):
    (folder / "index.html").write_text("<body>print('</body>')</body>")
    with site.server(folder, 0, serving.Reloading) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        assert answer(server, "/?from=a?b").count("<script>") == 1
        assert answer(server, "/_built?from=a?b") == "0"
        for path, kind in (("/", "text/html; charset=utf-8"), ("/_built", "text/plain")):
            with urllib.request.urlopen(f"http://127.0.0.1:{server.server_port}{path}") as found:
                assert (found.status, found.headers["Content-Type"]) == (200, kind)
                assert found.headers["Cache-Control"] == "no-store"
        server.shutdown()


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("a.ipynb", "application/x-ipynb+json"),
        ("a.cu", "text/plain; charset=utf-8"),
        ("a.cuh", "text/plain; charset=utf-8"),
        ("a.py", "text/plain; charset=utf-8"),
        ("a.js", "text/javascript"),
        ("a.woff2", "font/woff2"),
        ("a.html", "text/html"),
    ],
)
def test_what_a_file_is_said_to_be(name, kind):
    assert serving.Handler.guess_type(serving.Handler, name) == kind


def test_the_port_is_the_one_that_the_readme_names():
    for name in ("README.md", "README.zh.md", "docs/en/contributing.md"):
        text = (ROOT / name).read_text(encoding="utf-8")
        assert f"http://{serving.HOST}:{serving.PORT}" in text, name


def test_a_preview_without_a_page_is_one_sentence(capsys):
    assert site.main(["preview", "beyond/multi_gpu"]) == 1
    said = capsys.readouterr().err
    assert said.startswith(
        "docs/en/beyond/multi_gpu.md and docs/zh/beyond/multi_gpu.md are not there: "
    )
    assert said.count("\n") == 1


def test_a_preview_watches_what_it_is_made_of():
    names = {path.relative_to(ROOT).as_posix() for path in site._files(["basics/coalescing"])}
    assert names > {
        *("docs/en/basics/coalescing.md", "docs/zh/basics/coalescing.md", "docs/glossary.yml"),
        *("docs/figures/basics/coalescing.py", "docs/labels/basics_coalescing.yml"),
        *(
            f"examples/basics/coalescing/{file}"
            for file in ("chapter.py", "coalescing.cu", "exercises.py", "exercises.ipynb")
        ),
        "examples/basics/ladder/ladder.py",
        paths.shown(recording.whole_path("basics/coalescing")),
    }
    assert "docs/en/basics/timing.md" not in names


def test_a_preview_that_is_served_builds_by_a_process_of_its_own(monkeypatch):
    """Modules of figures, and what is remembered of files, are read anew."""
    ran = []
    monkeypatch.setattr(
        site.subprocess, "run", lambda *a, **k: ran.append(a) or subprocess.CompletedProcess(a, 0)
    )
    monkeypatch.setattr(
        site, "watch", lambda server, page, build, files: ran.append((page, build(), files()))
    )
    assert site.main(["preview", "basics/coalescing", "--serve", "--port", "0"]) == 0
    command, (page, built, files) = ran[0][0], ran[1]
    assert command[:5] == [sys.executable, "-m", "cudatut.site", "preview", "basics/coalescing"]
    assert (page, built) == ("basics/coalescing/", True) and files
