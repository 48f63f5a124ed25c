"""Kernels of a step begin while the one before still runs (ptx/overlap.cuh). Each of them, as PTX, has to let the next one
begin, and to wait before it writes, or reads what another may have written. Compiled by nvcc; needs no GPU."""

import re

import pytest

from cudatut.paths import examples_dir

FOLDER = examples_dir() / "llm/kernels"
# Those that GpuBackend launches in a step.
KERNELS = {
    "activation": ["embed_q8", "embed_bf16", "gather"],
    "attention/decode": ["decode<64,4,4,true>", "decode<64,8,4,true,__nv_fp8_e4m3>"],
    "attention/flash": [
        "flash<64,128,64,4,2,true,true,false>",
        "flash<64,128,64,4,2,true,true,false,__nv_fp8_e4m3>",
    ],
    "attention/flash_hopper_paged": ["flash_hopper_paged<64,2,128,2,2,16,true>"],
    "attention/flash_parts": [
        "flash_parts<64,128,64,4,2>",
        "flash_parts<64,128,64,4,2,__nv_fp8_e4m3>",
        "merge_parts<64,128,64>",
    ],
    "fused": ["norm_qkv<Q4_1,16,8,4>", "norm_gate_up<Q8_0,32,4,3>"],
    "gemv": ["gemv<Q4_1,16,8,4,float,true>", "gemv<Q8_0,64,2,4,float,false>"],
    "linear": [
        "linear<16,32,64,16,16,4,float,true>",
        "linear<64,128,64,32,64,3,__nv_bfloat16,false>",
        "linear<64,64,64,32,32,4,__nv_bfloat16,false,true>",
    ],
    "linear_qkv": ["linear_qkv<64,64,64,32,32,8>", "linear_qkv<16,64,64,16,16,4,__nv_fp8_e4m3>"],
    "linear_split": ["linear_split<3,64,64,64,32,32,4,float,true>"],
    "linear_hopper": [
        "linear_hopper<1,16,9,true,Add>",
        "linear_hopper<1,32,16,false,Add>",
        "linear_hopper<1,96,9,false,Gates>",
        "linear_hopper<2,256,4,false,Gates>",
        "linear_hopper<2,128,6,false,Store>",
    ],
    "norms": ["rms_norm<float,float,4,32,5>"],
}


def ptx(file, compiler, work):
    """PTX for sm_90 of each kernel that KERNELS names in this file."""
    keep = "".join(
        f"__global__ void keep{i}(void** to) {{ *to = (void*)&{name}; }}\n"
        for i, name in enumerate(KERNELS[file])
    )
    text = f'#include "llm/kernels/{file}.cu"\n{keep}'
    arch = "sm_90a" if "wgmma" in (FOLDER / f"{file}.cu").read_text() else "sm_90"
    flags = ["-std=c++17", f"-arch={arch}", "-ptx"]
    done = compiler(text, flags, work, [examples_dir()], output=True)
    assert done.status == 0, done.log
    parts = re.split(r"\.entry ", done.output.decode())[1:]
    return [part for part in parts if "\tret;" in part]  # not what is only declared


# Products that call their x, which the kernel before has written, `const __restrict__` all the same.
COPIES_X = ["gemv", "linear", "linear_qkv", "linear_split"]


def reached(text, parameter):
    """Instructions of a kernel whose address comes from a pointer parameter: (line, instruction), in order."""
    lines = [line.strip() for line in text.splitlines()]
    from_it = set()
    while True:  # registers are set anew in loops
        before = len(from_it)
        for line in lines:
            name, _, operands = line.rstrip(";").partition("\t")
            target, *sources = re.findall(r"%\w+|\[\S*?param_\d+\]", operands) or [""]
            computed = name.startswith(("mov", "add", "sub", "cvta", "mad", "selp", "ld.param"))
            if computed and any(
                s in from_it or s.endswith(f"_param_{parameter}]") for s in sources
            ):
                from_it.add(target)
        if len(from_it) == before:
            break
    address = re.compile(r"\[(%\w+)(?:\+-?\d+)?\]")
    return [
        (number, line)
        for number, line in enumerate(lines)
        if any(register in from_it for register in address.findall(line))
    ]


def read_early(text, parameter):
    """What reads behind a pointer parameter otherwise than by a copy past the registers, or before the wait."""
    lines = text.splitlines()
    (wait,) = (n for n, line in enumerate(lines) if "griddepcontrol.wait" in line)
    found = reached(text, parameter)
    assert found, "the parameter is read nowhere: this test does not see what it should"
    return [line for n, line in found if n < wait or "cp.async" not in line]


def test_read_early_sees_what_it_should():
    body = """\tld.param.u64 \t%rd1, [k_param_0];
\tcvta.to.global.u64 \t%rd2, %rd1;
{}\tgriddepcontrol.wait;
\tadd.s64 \t%rd3, %rd2, 32;
\tcp.async.cg.shared.global [%r1], [%rd3], 16, %r2;
{}"""
    plain = "\tld.global.nc.u32 \t%r3, [%rd2+4];\n"
    early = "\tcp.async.cg.shared.global [%r1], [%rd2], 16, %r2;\n"
    assert read_early(body.format("", ""), 0) == []
    assert read_early(body.format(plain, ""), 0) == [plain.strip()]
    assert read_early(body.format("", plain), 0) == [plain.strip()]
    assert read_early(body.format(early, ""), 0) == [early.strip()]
    other = early.replace("%rd2", "%rd9")
    assert read_early(body.format(other, ""), 0) == []


@pytest.mark.parametrize("file", KERNELS)
def test_it_waits_before_it_reads_or_writes(file, compiler, tmp_path):
    entries = ptx(file, compiler, tmp_path)
    for name in KERNELS[file]:
        base = re.match(r"\w+", name)[0]
        mine = [text for text in entries if re.match(rf"(_Z\d+)?{base}\b|_Z\d+{base}I", text)]
        assert mine, name
        for text in mine:
            before, wait, _ = text.partition("griddepcontrol.wait")
            assert wait and "griddepcontrol.launch_dependents" in text, name
            assert not re.search(r"\bst\.global|\batom\.|\bred\.", before), name
            # What `const __restrict__` promises not to change may be read: ld.global.nc, and copies past registers.
            assert not re.search(r"\bld\.global\.(?!nc)", before), name
            if file in COPIES_X:
                assert not read_early(text, 0), name
