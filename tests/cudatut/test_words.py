"""What is said to a reader is said in the reader's language, and stands in words.yml alone."""

import ast
import os
import re
import string
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from cudatut import catalog, cli, exercises, results, tool, words
from cudatut.gpu import kernel

PACKAGE = Path(words.__file__).parent
CHINESE = re.compile(r"[\u4e00-\u9fff]")
TEXTS = [
    (section, key, *both) for section, keys in words.table().items() for key, both in keys.items()
]


@pytest.fixture
def locale(monkeypatch):
    """Sets the locale, and nothing else that says which language is spoken."""

    def choose(name):
        for variable in (words.VARIABLE, "LC_ALL", "LC_MESSAGES", "LANG"):
            monkeypatch.delenv(variable, raising=False)
        monkeypatch.setenv("LANG", name)

    return choose


# --- the choice ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("variables", "lang"),
    [
        ({}, "en"),
        ({"LANG": "zh_CN.UTF-8"}, "zh"),
        ({"LANG": "zh_TW"}, "zh"),
        ({"LANG": "C"}, "en"),
        ({"LANG": "de_DE.UTF-8"}, "en"),
        ({"LANG": "zh_CN.UTF-8", "LC_MESSAGES": "en_US.UTF-8"}, "en"),
        ({"LANG": "en_US.UTF-8", "LC_MESSAGES": "zh_CN.UTF-8"}, "zh"),
        ({"LC_MESSAGES": "zh_CN.UTF-8", "LC_ALL": "C"}, "en"),
        ({"LC_ALL": "", "LANG": "zh_CN.GBK"}, "zh"),
        ({"CUDATUT_LANG": "zh", "LC_ALL": "C"}, "zh"),
        ({"CUDATUT_LANG": "en", "LC_ALL": "zh_CN.UTF-8"}, "en"),
    ],
)
def test_the_language_is_the_one_asked_for_then_the_locales(monkeypatch, locale, variables, lang):
    locale("")
    for variable, value in variables.items():
        monkeypatch.setenv(variable, value)
    assert words.language() == lang


@pytest.mark.parametrize("chinese", [True, False])
def test_windows_says_it_where_no_variable_does(monkeypatch, locale, chinese):
    locale("")
    monkeypatch.setattr(words, "_windows_is_chinese", lambda: chinese)
    assert words.language() == "en"
    monkeypatch.setattr(words.os, "name", "nt")
    assert words.language() == ("zh" if chinese else "en")


@pytest.mark.parametrize(
    ("arguments", "lang"),
    [
        (["run", "--lang", "zh", "no/thing"], "zh"),
        (["run", "--lang=zh", "no/thing"], "zh"),
        (["run", "no/thing", "--lang", "zh"], "zh"),
        (["run", "--lang", "en", "no/thing"], "en"),
        (["run", "no/thing"], "en"),
    ],
)
def test_an_option_says_it_before_all(book, locale, capsys, arguments, lang):
    locale("zh_CN.UTF-8" if lang == "en" and "--lang" in arguments else "C")
    assert cli.main(arguments) == 2
    assert bool(CHINESE.search(capsys.readouterr().err)) == (lang == "zh")


def test_help_is_in_that_language(locale, capsys):
    for arguments, chinese in ((["try", "--help"], False), (["try", "--lang", "zh", "-h"], True)):
        locale("C")
        with pytest.raises(SystemExit):
            cli.main(arguments)
        said = capsys.readouterr().out
        assert ("检查你自己的 kernel" in said) == chinese and "@rung kernel=NAME" in said


def test_maintainers_read_english(book, locale, capsys):
    locale("zh_CN.UTF-8")
    assert cli.main(["sanitize", "no/thing"]) == 2
    assert "there is no example 'no/thing'" in capsys.readouterr().err


# --- the table -------------------------------------------------------------------------------------


def placeholders(text: str) -> set[tuple]:
    return {tuple(field[1:]) for field in string.Formatter().parse(text) if field[1] is not None}


@pytest.mark.parametrize("section", words.table())
def test_each_sentence_stands_there_in_both_languages(section):
    for key, both in words.table()[section].items():
        assert len(both) == len(words.LANGUAGES), (section, key)
        english, chinese = both
        assert english.strip() and chinese.strip() and not CHINESE.search(english), (section, key)
        assert placeholders(english) == placeholders(chinese), (section, key)
        if not CHINESE.search(chinese):  # names, which stay as they are
            assert set(re.findall(r"\w+", chinese)) <= set(re.findall(r"\w+", english)), chinese
            assert english != chinese or len(english.split()) < 3, chinese
        # A sentence of Chinese has no punctuation of half width behind a character.
        assert not re.search(rf"{CHINESE.pattern}[,;:!?]", chinese), chinese


def trees() -> Iterator[tuple[Path, ast.Module]]:
    for path in sorted(PACKAGE.rglob("*.py")):
        yield path, ast.parse(path.read_text(encoding="utf-8"))


def sections(tree: ast.Module) -> list[str]:
    """The sections of the table that a module takes."""
    return [
        str(ast.literal_eval(node.args[0]))
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "words.section"
    ]


def patterns(tree: ast.Module) -> str:
    """An expression that fits the strings of a module; what a value makes of one may be any word."""
    inside = {
        id(part)
        for node in ast.walk(tree)
        if isinstance(node, ast.JoinedStr)
        for part in node.values
    }
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts = (p.value if isinstance(p, ast.Constant) else None for p in node.values)
            found.append("".join(r"[\w-]+" if p is None else re.escape(str(p)) for p in parts))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.append("" if id(node) in inside else re.escape(node.value))
    return "|".join(filter(lambda one: one != r"[\w-]+", filter(None, found)))


def test_each_sentence_is_said_by_the_module_that_takes_its_section():
    takers = {name: tree for _, tree in trees() for name in sections(tree)}
    assert takers.keys() == words.table().keys()
    own = {"exercises": {*catalog.LEVELS, "started", "done"}}
    for name, keys in words.table().items():
        said = re.compile(patterns(takers[name]))
        unsaid = {key for key in keys if not said.fullmatch(key)} - own.get(name, set())
        assert not unsaid, f"words.yml, {name}: nobody says {unsaid}"


def test_each_key_that_is_said_is_in_the_table():
    for path, tree in trees():
        known = {key for name in sections(tree) for key in words.table()[name]}
        for node in ast.walk(tree) if known else ():
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "_say":
                for key in keys_of(node.args[0]):
                    assert key in known, f"{path.name}, line {node.lineno}: no '{key}'"


def keys_of(node: ast.expr) -> list[str]:
    if isinstance(node, ast.IfExp):
        return keys_of(node.body) + keys_of(node.orelse)
    return [node.value] if isinstance(node, ast.Constant) else []


# Functions that maintainers and authors alone meet, and errors of who writes a program or an example.
NOT_READERS = {
    "cli.py": {
        "_parser", "_list", "_state", "_status", "_restamp", "_digests", "_moved", "_record", "_sanitize", "watch", "_tune",
        "_new", "_check", "_need_site", "_progress", "start", "done", "outcome",
    },
    "exercises.py": {"_cell", "chapters", "of_chapter", "graded"},
    "catalog.py": None,
    "results.py": None,
    "ladder.py": {"names"},
    "trial.py": {"_check_options"},
    "trace.py": {"__getitem__", "trace"},
    "cupti.py": {"listen"},
    "kernel.py": {"placed"},
}  # fmt: skip
SENTENCE = re.compile(r"(?<!pip )(?!pip )\b[A-Za-z']{2,} [a-z']{2,}")  # no command


def english(tree: ast.AST, passed_over: set[str]) -> Iterator[tuple[int, str]]:
    """Sentences that are printed, raised or shown without being said from the table."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef) and node.name in passed_over:
            continue
        says = isinstance(node, ast.Call) and (
            ast.unparse(node.func).rpartition(".")[2] in ("print", "show", "Check", "Lack")
            or ast.unparse(node.func).endswith(("Error", "Missing", "Memory", "_TooOld"))
        )
        for argument in node.args if says else ():
            for part in ast.walk(argument):
                sentence = isinstance(part, ast.Constant) and SENTENCE.search(str(part.value))
                if sentence and "_say(" not in ast.unparse(argument):
                    yield part.lineno, part.value
        yield from english(node, passed_over)


def test_no_sentence_for_readers_stands_outside_the_table():
    found = []
    for path, tree in trees():
        passed_over = NOT_READERS.get(path.name, set())
        if sections(tree) and passed_over is not None:
            found += [(path.name, *one) for one in english(tree, passed_over)]
    assert not found


def test_a_sentence_outside_the_table_is_noticed():
    for line in ('raise CheckError(f"it is {x} wrong")', 'print("it went wrong")'):
        assert list(english(ast.parse(line), set()))
    for line in ('raise CheckError(_say("it is wrong"))', 'print("x")', 'say("it is wrong")'):
        assert not list(english(ast.parse(line), set()))


# --- what is said ----------------------------------------------------------------------------------

COMMANDS = {
    "doctor": ("Examples can", "示例"),
    "exercise": ("Getting started", "入门"),
    "exercise start/hello 1 --solution": ("Our solution", "参考答案"),
    "try reduction no_such.cu": ("not found", "找不到 kernel 文件"),
    "trace no_such.py": ("there is no file", "没有文件"),
    "run no/such": ("there is no example", "没有名为"),
}


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("name", ["C", "zh_CN.UTF-8"])
def test_commands_speak_the_language_of_the_locale(
    locale, capsys, monkeypatch, tmp_path, name, command
):
    locale(name)
    monkeypatch.setenv("CUDATUT_PROGRESS", str(tmp_path))
    cli.main(command.split())
    said = "".join(capsys.readouterr())
    english, chinese = COMMANDS[command]
    expected, other = (english, chinese) if name == "C" else (chinese, english)
    assert expected in said and other not in said
    assert bool(CHINESE.search(said)) == (name != "C")


@pytest.mark.parametrize("encoding", ["gbk", "cp1252"])
def test_a_console_with_a_code_page_of_its_own_stops_nothing(tmp_path, encoding):
    env = tool.environment() | {
        words.VARIABLE: "zh", "PYTHONIOENCODING": encoding, "CUDATUT_PROGRESS": str(tmp_path)
    }  # fmt: skip
    command = [sys.executable, "-m", "cudatut"]
    for arguments in (["exercise"], ["run", "no/such"], ["exercise", "start/hello", "1"]):
        done = subprocess.run([*command, *arguments], env=env, cwd=tmp_path, capture_output=True)
        said = (done.stdout + done.stderr).decode(encoding)
        assert "Traceback" not in said and (
            "没有" in said or "练习" in said or "\\u" in said or "已" in said
        )
    file = tmp_path / "start_hello_1.py"
    assert 'lang="zh"' in file.read_text("utf-8")
    graded = subprocess.run([sys.executable, file], env=env, cwd=tmp_path, capture_output=True)
    said = graded.stderr.decode(encoding)
    assert graded.returncode == 1 and "UnicodeEncodeError" not in said
    assert ("start/hello 1" in said) and len(said.splitlines()) <= 3


def test_the_drivers_own_words_stay(monkeypatch):
    monkeypatch.setenv(words.VARIABLE, "zh")

    class LogicError(Exception):
        __module__ = "pycuda._driver"

    words_of_cuda = "cuCtxSynchronize failed: an illegal instruction was encountered"
    asked = exercises.Exercise("a/b", 1, {}, "easy", 1, {}, "", "sm_75")
    told = exercises.explained(LogicError("cuInit failed: no device")).text(asked, "zh")
    assert told == "未通过：a/b 1：CUDA 报告了一个错误\n  cuInit failed: no device"
    told = exercises.explained(LogicError(words_of_cuda)).text(asked, "zh")
    assert "被 GPU 中止\n  illegal instruction" in told
    said = 'kernel.cu(2): error: expected a ";"\n'
    told = kernel.explain_compile_error(said, "int a\nint b\n", "kernel.cu")
    first, error, *_ = told.splitlines()
    assert (
        first == "nvcc 无法编译 kernel.cu：" and 'kernel.cu 第 2 行：error: expected a ";"' in error
    )
    assert exercises._compiler_line(told) == error.strip() or "error: expected" in error


def test_results_are_told_in_that_language_and_recorded_in_english(monkeypatch, capsys):
    shown = results.Check("sum", True, 31, 0.0, 0.0, 1e-5, 1e-5)
    facts = results.Facts("x", [results.Fact("位", 1, None), results.Fact("ab", 22, "ms")])
    monkeypatch.setenv(words.VARIABLE, "zh")
    results.show(shown)
    assert capsys.readouterr().out.startswith("检查 sum：通过（31 个元素")
    assert (
        shown.text().startswith("check sum: passed (31 elements")
        and "<td>passed</td>" in shown.html()
    )
    assert facts.text("zh").splitlines() == [
        "x",
        "  名称  数值  单位",
        "  位       1",
        "  ab      22    ms",
    ]


def test_no_sentence_needs_what_is_heavy():
    code = "import sys\nfrom cudatut import words\nwords.section('cli')('interrupted')\n"
    code += "assert not {'numpy', 'IPython', 'pycuda'} & set(sys.modules)"
    subprocess.run(
        [sys.executable, "-c", code], check=True, env=os.environ | {words.VARIABLE: "zh"}
    )


@pytest.mark.parametrize(
    ("identifier", "chinese"),
    [(0x0804, True), (0x0404, True), (0x0409, False), (0x0405, False), (0x0403, False), (0x0400, False)],
)  # fmt: skip
def test_the_language_of_windows_is_the_low_part_of_its_identifier(
    monkeypatch, identifier, chinese
):
    """Simplified, traditional; English, Czech, Catalan, and none."""
    kernel32 = SimpleNamespace(GetUserDefaultUILanguage=lambda: identifier)
    monkeypatch.setattr("ctypes.CDLL", {"kernel32": kernel32}.get)
    assert words._windows_is_chinese.__wrapped__() is chinese


def test_a_sentence_is_said_in_the_language_asked_for(monkeypatch):
    monkeypatch.setattr(words, "table", lambda: {"s": {"k": ["one {n}", "甲 {n}"]}})
    say = words.section("s")
    assert (say("k", n=1), say("k", "zh", n=2), say("k", "en", n=3)) == ("one 1", "甲 2", "one 3")
    monkeypatch.setenv("CUDATUT_LANG", "zh")
    assert (say("k", n=1), say("k", "en", n=3)) == ("甲 1", "one 3")
