"""Kernels of a step begin while the one before still runs (overlap.cuh). Each of them, as PTX, has to let the next one
begin, and to wait before it writes, or reads what another may have written. Compiled by nvcc; needs no GPU."""

import re

import pytest

from cudatut.paths import examples_dir

FOLDER = examples_dir() / "llm"
# Those that GpuBackend launches in a step.
KERNELS = {
    "activation": ["embed_q8", "embed_bf16", "gather"],
    "decode": ["decode<64,4,4,true>", "decode<64,8,4,true,__nv_fp8_e4m3>"],
    "flash": [
        "flash<64,128,64,4,2,true,true,false>",
        "flash<64,128,64,4,2,true,true,false,__nv_fp8_e4m3>",
    ],
    "flash_hopper_paged": ["flash_hopper_paged<64,2,128,2,2,16,true>"],
    "flash_parts": [
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
    text = f'#include "{file}.cu"\n{keep}'
    arch = "sm_90a" if "wgmma" in (FOLDER / f"{file}.cu").read_text() else "sm_90"
    flags = ["-std=c++17", f"-arch={arch}", "-ptx"]
    done = compiler(text, flags, work, [FOLDER, FOLDER.parent], output=True)
    assert done.status == 0, done.log
    parts = re.split(r"\.entry ", done.output.decode())[1:]
    return [part for part in parts if "\tret;" in part]  # not what is only declared


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
