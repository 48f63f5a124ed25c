"""`build --serve` and `serve`: a port that is taken, a reader who leaves, Ctrl-C."""

import os
import signal
import socket
import struct
import subprocess
import sys
import urllib.error
import urllib.request
from functools import partial
from pathlib import Path
from threading import Thread

import pytest

from cudatut.site import __main__ as site

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
    with pytest.raises(site.BuildError, match="--port"):
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
