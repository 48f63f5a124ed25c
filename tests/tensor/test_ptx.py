"""tests/tensor/hopper_on_cpu/ptx.py: the instructions of an `asm` statement as calls in C++, operand by operand."""

import ptx
import pytest

KNOWN = {"mbarrier_init_shared_cta_b64", "ldmatrix_x4", "wgmma_f32_bf16", "try_wait", "copy_2d", "setp_ne_s32"}  # fmt: skip


def translated(text):
    return ptx.translated(text, KNOWN)


@pytest.mark.parametrize(
    ("asm", "cpp"),
    [
        (
            'asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(f(x, 2)), "r"(n) : "memory");',
            "{ ptx::mbarrier_init_shared_cta_b64((f(x, 2)), (n)); }",
        ),
        (
            'asm("ldmatrix.x4 {%0, %1}, [%2];" : "=r"(t[0]), "=r"(t[1]) : "r"(row));',
            "{ ptx::ldmatrix_x4(ptx::outs((t[0]), (t[1])), (row)); }",
        ),
        (
            'asm volatile("copy.2d"\n " [%0], [%1, {%2, %3}];" ::"r"(to), "l"(&map), "r"(c), "r"(r));',
            "{ ptx::copy_2d((to), (&map), ptx::ins((c), (r))); }",
        ),
        (
            'asm volatile("{ .reg .pred p; setp.ne.s32 p, %1, 0;\\nwgmma.m64n8k16.f32.bf16 {%0}, p, 1; }"'
            ' : "+f"(d) : "r"((int)add));',
            "{ bool ptx_p = {}; ptx::setp_ne_s32(ptx_p, ((int)add), 0);"
            " ptx::wgmma_f32_bf16<64, 8, 16>(ptx::outs((d)), ptx_p, 1); }",
        ),
        (
            'asm volatile("{ .reg .pred done;\\nagain_%=:\\ntry_wait done, [%0];\\n@!done bra again_%=; }" ::"r"(a));',
            "{ bool ptx_done = {}; again_0:; ptx::try_wait(ptx_done, (a)); if (!ptx_done) goto again_0; }",
        ),
        ('asm volatile("try.wait _, %%rank;" ::: "memory");', "{ ptx::try_wait(ptx::rank()); }"),
        ('asm volatile("" : "+r"(row), "+r"(head));', "{ }"),
        ('asm("nobody.knows %0;" :: "r"(x));', '{ machine::fail("nothing stands for nobody.knows"); }'),
    ],
)  # fmt: skip
def test_statements(asm, cpp):
    assert translated(asm) == cpp
    assert (
        translated(f"void f() {{ if (x) {asm} else y(); }}")
        == f"void f() {{ if (x) {cpp} else y(); }}"
    )


def test_labels_of_two_statements_differ():
    text = 'asm("at_%=: bra at_%=;");'
    assert translated(text * 2) == "{ at_0:; goto at_0; }{ at_1:; goto at_1; }"


@pytest.mark.parametrize("text", ['asm("x" : "r"(a', 'asm("x") + 1;', 'asm("x" : r(a));'])
def test_what_is_no_statement_is_an_error(text):
    with pytest.raises(ValueError, match="asm"):
        translated(text)
