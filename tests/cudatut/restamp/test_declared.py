"""What the text of an example declares of its kernels."""

import ast

import pytest

from cudatut.restamp import declared


@pytest.mark.parametrize(
    ("how", "wrapped"),
    [
        ("", True),
        ("no_extern_c=True", False),
        ("options=['-O3'], no_extern_c=True", False),
        ("no_extern_c=False, options=['-O3']", True),
        ("no_extern_c=flag", True),
    ],
)
def test_a_source_is_wrapped_in_extern_c_unless_its_call_says_otherwise(how, wrapped):
    call = ast.parse(f"SourceModule(source, {how})", mode="eval").body
    assert declared.kernel("__global__ void k() {}", "x.py:1", call).wrap is wrapped


def test_a_template_whose_default_is_an_instance_of_another_has_its_own_name():
    code = "template <class T = tile<4>> __global__ void k(T x) {}"
    assert declared.templates_without_instance(code, ()) == ["k"]
    assert declared.templates_without_instance(code, ("k<int>",)) == []


def call(text):
    return ast.parse(text, mode="eval").body


PLAIN = "__global__ void k() {}\n"


@pytest.mark.parametrize(
    ("where", "file", "line"),
    [("examples/a/x.cu", "examples/a/x.cu", 0), ("examples/a/x.py:12", "examples/a/x.py", 12)],
)
def test_where_a_source_lies(where, file, line):
    source = declared.Source(where, PLAIN)
    assert (source.file, source.line) == (file, line)


@pytest.mark.parametrize(
    ("requires", "text", "every", "some"),
    [
        ("sm_75", "", ["75", "80", "86", "89", "90", "100", "120"], ["75", "90", "120"]),
        ("sm_80", "", ["80", "86", "89", "90", "100", "120"], ["80", "90", "120"]),
        ("sm_87", "", ["87", "89", "90", "100", "120"], ["87", "90", "120"]),
        ("sm_100", "", ["100", "120"], ["100", "120"]),
        ("sm_90a", "", ["90a"], ["90a"]),
        # The source says it itself.
        ("sm_75", "// requires: sm_100\n", ["100", "120"], ["100", "120"]),
        ("sm_75", "//requires: sm_100a\n", ["100a"], ["100a"]),
    ],
)
def test_which_architectures_a_source_claims(requires, text, every, some):
    source = declared.Source("x.cu", text + PLAIN, requires)
    assert source.architectures() == every and source.architectures(False) == some


@pytest.mark.parametrize(
    "text", ["#if __CUDA_ARCH__ >= 900\n#endif\n", "#include <cuda/barrier>\n", "# include<mma.h>"]
)
def test_what_may_differ_is_compiled_for_each_architecture(text):
    source = declared.Source("x.cu", PLAIN, "sm_86")
    each = ["-gencode", "arch=compute_86,code=sm_86", "-gencode", "arch=compute_90,code=sm_90"]
    each += ["-gencode", "arch=compute_120,code=sm_120"]
    once = ["-gencode", "arch=compute_86,code=[sm_86,sm_90,sm_120]"]
    assert source.code_for([PLAIN, text]) == each
    assert source.code_for([PLAIN, '#include "parts.cuh"\n']) == once
    assert len(source.code_for([PLAIN], every=True)) == 2 * len(["86", "89", "90", "100", "120"])


def test_the_kernels_in_strings_of_a_script(book):
    path = book.file(
        "a/main.py",
        f'''import cudatut as ct
named = """{PLAIN}"""
other = ct.Kernel(named, "k", defines={{"N": 3, "M": n}}, options=["-O1", more])

direct = ct.Kernel("""
{PLAIN}""", "k", defines={{"N": 3}})
made = f"""__global__ void f() {{{{ int a[{{n}}]; }}}}"""
unused = """__global__ void u() {{}}"""
child = """
    import cudatut as ct
    ct.Kernel(\'__global__ void c() {{}}\', "c")
"""
print("__global__ is a word")
''',
    )
    found = declared.of_script(path, "sm_80")
    assert [(one.line, one.computed, one.defines, one.options) for one in found] == [
        (2, True, ("-DN=3", "-DM=1"), ("-O1",)),
        (6, False, ("-DN=3",), ()),
        (9, True, (), ()),
        (10, False, (), ()),
        (13, False, (), ()),
    ]
    assert found[2].code == "__global__ void f() { int a[1]; }"
    assert {one.requires for one in found} == {"sm_80"} and all(one.wrap for one in found)
    assert {one.file for one in found} == {"examples/a/main.py"}
    assert found[0].folders == (book.root / "a", book.root)


def test_a_kernel_in_a_program_in_a_string_has_its_line():
    text = 'x = 1\nchild = """\nimport cudatut as ct\n\nK = \'__global__ void c() {}\'\n"""\n'
    (one,) = declared.of_python(text, "a/x.py")
    assert one.where == "a/x.py:5"
    (one,) = declared.of_python(text, "a/x.py", 10)
    # Its program begins on the second line, and it stands on the fourth of that.
    assert one.where == "a/x.py:14" and one.code == "__global__ void c() {}"


def test_exercises_declare_no_kernels(book):
    path = book.file("start/errors_exercises.py", f'K = """{PLAIN}"""\n')
    assert declared.of_script(path) == []
    assert len(declared.of_script(book.file("start/errors.py", f'K = """{PLAIN}"""\n'))) == 1


def test_a_file_once_for_each_set_of_macros(book):
    path = book.file("a/k.cu", f"template <int N>\n{PLAIN}// @instance k<7>\n")
    book.file(
        "a/main.py",
        """
ct.Kernel("a/k.cu", "k<3>", {"never": 1}, defines={"B": 2})
ct.Kernel("a/k.cu", "k<4>", defines={"B": 2})
ct.Kernel("a/k.cu", "k<5>", options=("-O1",), defines={"B": 1})
ct.Kernel("a/k.cu", "k<7>", defines={"B": 1})
ct.Kernel("a/other.cu", "k<9>", defines={"B": 9})
""",
    )
    found = declared.of_file(path, ("sm_80", "sm_90", "sm_90a"))
    assert [(one.requires, one.defines, one.options, one.instances) for one in found] == [
        (arch, *more)
        for more in (
            (("-DB=1",), (), ("k<7>",)),
            (("-DB=1",), ("-O1",), ("k<7>", "k<5>")),
            (("-DB=2",), (), ("k<7>", "k<3>", "k<4>")),
        )
        for arch in ("sm_80", "sm_90a")
    ]
    assert {one.where for one in found} == {"examples/a/k.cu"}
    assert {one.folders for one in found} == {(book.root / "a", book.root)}


@pytest.mark.parametrize(
    ("text", "wraps"),
    [
        (PLAIN, [True]),
        (f'extern "C" {PLAIN}', [False]),
        (f"template <int N>\n{PLAIN}", [False]),
        (f"{PLAIN}int main() {{}}\n", [False]),  # a program, which nvcc alone compiles
        ("int main() {}\n", []),
    ],
)
def test_a_file_that_nobody_compiles_otherwise(book, text, wraps):
    found = declared.of_file(book.file("a/k.cu", text))
    assert [one.wrap for one in found] == wraps
    assert all((one.requires, one.defines, one.options) == ("sm_75", (), ()) for one in found)


def test_a_file_elsewhere_is_called_by_its_name(book, tmp_path):
    path = tmp_path / "mine.cu"
    path.write_text(PLAIN)
    (one,) = declared.of_file(path)
    assert one.where == "mine.cu"


def test_all_sources_in_order_with_what_their_examples_claim(book, tmp_path):
    cells = '# %% one\nimport cudatut as ct\nfrom cudatut.book.a import of_all\nct.Kernel("a/k.cu", "k")\n'
    own = '# %% two\nct.Kernel("""__global__ void own() {}""", "own")\n'
    book.example("a/first", cells + own, requires="sm_90")
    book.example("b/second", cells, requires="sm_80")
    book.example("b/third", cells, requires="sm_100a")
    book.file("a/k.cu", PLAIN)
    book.file("a/of_all.py", 'K = """__global__ void of_all() {}"""\n')
    book.file("b/copy.cu", PLAIN)  # the same once more, but what it claims
    book.file("b/same.cu", PLAIN)
    book.file("b/nobodys.py", 'K = """__global__ void nobodys() {}"""\n')
    (tmp_path / "more.cu").write_text("__global__ void more() {}\n")
    found = [(one.where, one.requires) for one in declared.sources([tmp_path / "more.cu"])]
    assert [where for where, _ in found] == sorted(where for where, _ in found)
    assert sorted(found) == [
        ("examples/a/first.py:15", "sm_90"),
        ("examples/a/k.cu", "sm_100a"),
        ("examples/a/k.cu", "sm_80"),
        ("examples/a/of_all.py:1", "sm_80"),
        ("examples/b/copy.cu", "sm_75"),
        ("examples/b/nobodys.py:1", "sm_75"),
        ("more.cu", "sm_75"),
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("'abc'", "abc"),
        ("f'a{n}b{m}c'", "a1b1c"),
        ("3", None),
        ("name", None),
    ],
)
def test_the_text_of_an_expression(text, said):
    assert declared.text_of(call(text)) == said


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("ct.Kernel(source, 'gemm<64,half>')", ["gemm<64,half>"]),
        ("ct.Kernel(source, f'tiles::gemm<{n}>')", ["tiles::gemm<1>"]),
        ("ct.Kernel(source, 'gemm')", []),
        ("ct.Kernel(source)", []),
        ("ct.Kernel('gemm<64>')", []),
        ("ct.Kernel(source, name)", []),
        ("ct.show(title, 'a<b> is c')", []),
        ("ct.show(title, 'a<b; c>')", []),
    ],
)
def test_the_instance_that_a_call_compiles(text, found):
    assert declared.instances_of(call(text)) == found
    assert declared.instances_of(None) == []


def test_an_instance_asked_for_twice_is_one():
    code = "// @instance gemm<64, half>\n"
    asked = ["gemm<64,half>", "gemm< 32 >"]
    assert declared.unique_names(code, asked) == ("gemm<64, half>", "gemm<32>")


def test_a_source_of_which_an_instance_is_asked_is_not_wrapped():
    made = declared.kernel(PLAIN, "x.py:1", call("ct.Kernel(source, 'k<3>')"))
    assert not made.wrap and made.instances == ("k<3>",)
    assert declared.kernel(PLAIN, "x.py:1", None).wrap
    assert not declared.kernel(f'extern "C" {PLAIN}', "x.py:1", None).wrap


@pytest.mark.parametrize(
    ("text", "flags", "constant"),
    [
        ("f()", (), True),
        ("f(defines={'N': 3, 'T': 'half'})", ("-DN=3", "-DT=half"), True),
        ("f(defines={'N': n})", ("-DN=1",), False),
        ("f(defines={name: 3, 'M': 2})", ("-DM=2",), False),
        ("f(defines={**more, 'M': 2})", ("-DM=2",), False),
        ("f(defines=given)", (), False),
        ("f(options=['-DN=3'])", (), True),
    ],
)
def test_the_macros_of_a_call(text, flags, constant):
    assert declared.defines_of(call(text)) == flags
    assert declared.constant(declared.keyword(call(text), "defines")) is constant
    assert declared.defines_of(None) == () and declared.keyword(None, "defines") is None


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("f()", ()),
        ("f(options=['-O1', flag, '-G'])", ("-O1", "-G")),
        ("f(options=('-O1',))", ("-O1",)),
        ("f(options=all_of_them)", ()),
    ],
)
def test_the_options_of_a_call(text, options):
    assert declared.options_of(call(text)) == options


CALL = 'ct.Kernel("a/k.cu", "k", defines={"N": 1})\n'


@pytest.mark.parametrize(
    ("script", "hidden"),
    [
        (CALL, False),
        (CALL * 2, False),
        ('ct.Kernel("a/k.cu", "k")\n', False),
        ('ct.Kernel("a/k.cu", "k", defines={"N": n})\n', True),
        (f'{CALL}ct.Kernel("a/k.cu", "k", defines=more)\n', True),
        (f'{CALL}FILE = "a/k.cu"\n', True),  # which another call may compile
        ('"see a/k.cu"\n', True),
        ("", True),
    ],
)
def test_whether_a_run_may_set_macros_that_nobody_reads_off_the_scripts(book, script, hidden):
    book.file("a/main.py", script)
    book.file("b/other.py", 'ct.Kernel("a/kk.cu", "k", defines={"N": n})\n')
    source = declared.Source("examples/a/k.cu", PLAIN)
    assert declared.macros_are_hidden(source) is hidden


def test_a_ladder_sets_the_macros_of_its_rungs_and_a_string_tells_its_own(book):
    book.file("a/main.py", CALL)
    rung = declared.Source("examples/a/k.cu", f"// @rung 20 block=256\n{PLAIN}")
    assert declared.macros_are_hidden(rung)
    assert declared.macros_are_hidden(declared.Source("examples/a/x.py:3", PLAIN)) is False


@pytest.mark.parametrize(
    ("more", "named", "found"),
    [
        ("", (), ["k"]),
        ("", ("tiles::k<3>",), []),
        ("", ("tiles::kk<3>",), ["k"]),
        ("void f() { k<3><<<1, 1>>>(); }", (), []),
        ("template __global__ void k<3>(int * x);", (), []),
        ("__global__ void plain() {}", (), ["k"]),
    ],
)
def test_templates_of_which_nobody_names_an_instance(more, named, found):
    code = f"template <int N> __global__ void k(int *x) {{}}\n{more}\n"
    assert declared.templates_without_instance(code, named) == found
