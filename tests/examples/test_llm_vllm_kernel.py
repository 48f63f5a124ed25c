"""examples/llm/vllm_kernel without a GPU: the chapter's program and checks, with kernels in NumPy that read the arguments of the
launches; what the launchers ask for; what they refuse; which elements a lane has."""

import re
from types import SimpleNamespace

import numpy as np
import pytest

import cudatut as ct
from cudatut.book.llm.decoding import steps as decoding_steps
from cudatut.book.llm.vllm_kernel import loads, scheme
from cudatut.book.numbers.bf16 import to_bf16, to_float
from cudatut.gpu.kernel import parameters
from cudatut.paths import examples_dir

SOURCE = (examples_dir() / scheme.SOURCE).read_text(encoding="utf-8")


class Array(np.ndarray):
    """Of the host, with what one on the GPU has."""

    def get(self):
        return np.array(self)

    def set(self, other):
        self[...] = other


def array(of):
    return np.ascontiguousarray(of).view(Array)


class Kernel:
    """store, paged and join in NumPy, on the cache as paged_scheme.cu lays it out; others do nothing."""

    launches: list[tuple] = []  # noqa: RUF012

    def __init__(self, source, name):
        self.source, self.kind = source, name.partition("<")[0]
        self.of = re.findall(r"[\w]+", name.partition("<")[2])
        self.parameters = parameters(SOURCE, name) if source == scheme.SOURCE else None

    def __call__(self, *arguments, grid, block, shared=0):
        self.launches.append((self, arguments, grid, block, shared))
        if self.parameters is None:
            return
        assert len(arguments) == len(self.parameters), self.kind
        for parameter, argument in zip(self.parameters, arguments):
            assert parameter.pointer == isinstance(argument, np.ndarray), parameter
            if parameter.pointer:
                assert argument.dtype == parameter.dtype or parameter.dtype is None, parameter
        getattr(self, self.kind)(*arguments, grid, block, shared)

    def cache(self, keys, values, kv_heads, chunks, columns):
        """The cache as [slots, kv_heads, D], views of it where they can be."""
        d, block = map(int, self.of[:2])
        if chunks:
            keys = keys.reshape(-1, kv_heads, d // 8, block, 8).transpose(0, 3, 1, 2, 4)
        if columns:
            values = values.reshape(-1, kv_heads, d, block).transpose(0, 3, 1, 2)
        return keys, values

    def store(self, from_keys, from_values, slots, keys, values, grid, block, shared):
        d, size = map(int, self.of[:2])
        assert grid == (len(slots), from_keys.shape[1]) and block == d
        chunks, columns = (x == "true" for x in self.of[2:4])
        views = self.cache(keys, values, grid[1], chunks, columns)
        for to, come, turned in zip(views, (from_keys, from_values), (chunks, columns)):
            to = to if turned else to.reshape(-1, size, grid[1], d)
            for row, slot in zip(come, slots):
                if slot >= 0:
                    to[slot // size, slot % size] = row.reshape(to.shape[2:])

    def paged(self, q, keys, values, tables, width, lengths, kv_heads, room, scale, out, lse, grid, block, shared):  # fmt: skip
        d, size = map(int, self.of[:2])
        part = int(self.of[5])
        heads, s, parts = grid
        q, tables = q.reshape(s, heads, d), tables.reshape(s, width)
        assert block == 128 and shared >= 4 * -(-room // size) * size
        of_keys, of_values = self.cache(keys, values, kv_heads, self.of[2] == "true", self.of[4] == "true")  # fmt: skip
        of_keys = np.array(of_keys).reshape(-1, kv_heads, d)
        of_values = np.array(of_values).reshape(-1, kv_heads, d)
        out, lse = out.reshape(s, heads, parts, d), lse.reshape(s, heads, parts)
        for i, length in enumerate(lengths):
            for p in range(parts):
                begin = p * part
                end = min(begin + part, length) if part else length
                if begin >= end:
                    continue
                assert end - begin <= room
                j = np.arange(begin, end)
                slots = tables[i, j // size] * size + j % size
                for h in range(heads):
                    k, v = (to_float(x[slots, h // (heads // kv_heads)]).astype("float64") for x in (of_keys, of_values))  # fmt: skip
                    scores = k @ to_float(q[i, h]) * scale
                    weights = np.exp(scores - scores.max())
                    result = weights / weights.sum() @ v
                    out[i, h, p] = result if part else to_bf16(result)
                    lse[i, h, p] = scores.max() + np.log(weights.sum())

    def join(self, results, of_parts, lengths, parts, out, lse, grid, block, shared):
        part = int(self.of[1])
        assert block == int(self.of[0]) and grid == out.shape[1::-1]
        for i, length in enumerate(lengths):
            count = -(-int(length) // part)
            sums = of_parts[i, :, :count].astype("float64")
            weights = np.exp(sums - sums.max(axis=1, keepdims=True))
            total = weights.sum(axis=1, keepdims=True)
            out[i] = to_bf16(np.einsum("hp,hpd->hd", weights / total, results[i, :, :count]))
            lse[i] = sums.max(axis=1) + np.log(total[:, 0])

    def resources(self, block, shared=0):
        return SimpleNamespace(registers=0, shared_bytes=shared, blocks_per_sm=1)


@pytest.fixture(autouse=True)
def no_gpu(monkeypatch):
    gpu = SimpleNamespace(sm_count=4, compute_capability=(9, 0), shared_per_block_optin=227 * 1024, shared_per_block=48 * 1024, shared_per_sm=228 * 1024)  # fmt: skip
    monkeypatch.setattr(Kernel, "launches", [])
    monkeypatch.setattr(ct, "Kernel", Kernel)
    monkeypatch.setattr(ct, "device", lambda: gpu)
    monkeypatch.setattr(ct, "to_device", array)
    monkeypatch.setattr(ct, "empty", lambda shape, dtype: array(np.zeros(shape, dtype)))
    monkeypatch.setattr(ct, "compile_ahead", list)
    monkeypatch.setattr(ct, "poison", lambda array: array.fill(0x7FC0))
    monkeypatch.setattr(decoding_steps, "ct", ct)


def cells(file="chapter"):
    text = (examples_dir() / f"llm/vllm_kernel/{file}.py").read_text(encoding="utf-8")
    found = re.split(r"^# %% (?!\[)(.+)$", text, flags=re.M)
    return {name: re.split(r"^# %%", code, flags=re.M)[0] for name, code in zip(found[1::2], found[2::2])}  # fmt: skip


def test_the_program_and_the_checks_hold_with_kernels_in_numpy(monkeypatch):
    checked, space = [], {}
    monkeypatch.setattr(ct, "check", lambda got, wanted, name, **how: checked.append((name, np.allclose(got, wanted, rtol=how.get("rtol", 0), atol=how.get("atol", 0)))))  # fmt: skip
    for name in ("program", "setup", "check"):
        exec(compile(cells()[name], name, "exec"), space)
    assert len(checked) == 1 + 3 * len(scheme.STEPS)
    assert all(right for _, right in checked), checked


def test_claims_that_are_counted(monkeypatch):
    """The keys of a thread block; the index of a value's elements is read from the kernel's text."""
    said, space = {}, {}
    monkeypatch.setattr(ct, "claim", lambda **row: said.update({row["id"]: row}))
    monkeypatch.setattr(
        Kernel,
        "elements_of_lanes",
        lambda self, out, *_: lanes(out, *map(int, self.of)),
        raising=False,
    )
    for name in ("setup", "claim-elements", "claim-partition"):
        exec(compile(cells("claims")[name], name, "exec"), space)
    row = said["vllm-partition-size"]
    assert (row["measured"], row["control"][1:]) == (512, (4096, 4096))
    row = said["vllm-kernel-elements"]
    assert row["measured"] == [16 * i for i in range(8)]
    assert row["control"][1] == row["control"][2] == row["expected"]


def lanes(out, d, block):
    per_row = max(block // 8, 1)
    for lane in range(32):
        out[lane] = [lane // per_row + i * (32 // per_row) for i in range(d * per_row // 32)]


def test_both_kernels_get_the_same_work(monkeypatch):
    load = loads.Load(3, 64, 4, 2, 128)
    asked = []
    monkeypatch.setattr(loads.decode, "paged", lambda *given: asked.append(given))
    results = []
    for step in scheme.STEPS.values():
        load.vllm(step)()
        results.append(to_float(load.out.get()))
    load.ours(16)()
    q, keys, values, tables, _, size = asked[0][:6]
    wanted = np.zeros(results[0].shape)
    for i in range(3):
        j = np.arange(64)
        slots = tables[i, j // size] * size + j % size
        for h in range(4):
            k, v = (to_float(x[slots, h // 2]).astype("float64") for x in (keys, values))
            p = np.exp(k @ to_float(q[i, h]) * 128**-0.5)
            wanted[i, h] = p / p.sum() @ v
    for result in results:
        np.testing.assert_allclose(result, wanted, atol=0.01)
    assert len(load.stored) == 3, "steps of one layout share their cache"


@pytest.mark.parametrize("longest, shared", [(1, 2048), (513, 4 * 528), (8192, 32768)])
def test_logits_of_the_whole_context_lie_in_shared_memory_unless_there_are_parts(longest, shared):
    for step in (scheme.V1, scheme.V2):
        cache = scheme.Cache(longest, 2, 128, 16, step)
        q, out = array(np.zeros((1, 4, 128), "uint16")), array(np.zeros((1, 4, 128), "uint16"))
        tables = array(np.zeros((1, -(-longest // 16)), "int32"))
        lengths, lse = array(np.zeros(1, "int32")), array(np.zeros((1, 4), "float32"))
        run = cache.attention(q, tables, lengths, out, lse, longest)
        Kernel.paged, kept = lambda *given: None, Kernel.paged
        Kernel.join, joined = lambda *given: None, Kernel.join
        try:
            run()
        finally:
            Kernel.paged, Kernel.join = kept, joined
        launch = next(one for one in reversed(Kernel.launches) if one[0].kind == "paged")
        assert launch[4] == (shared if not step.part else max(2048, min(shared, 2048)))
        assert launch[2] == (4, 1, -(-longest // 512) if step.part else 1)


@pytest.mark.parametrize(
    "d, block, step, what",
    [
        (100, 16, scheme.V1, "multiple of 32"),
        (128, 24, scheme.V1, "power of two"),
        (96, 1, scheme.V1._replace(group=64), "groups of 64"),
    ],
)
def test_what_no_kernel_can_do_is_refused(d, block, step, what):
    with pytest.raises(ValueError, match=what):
        scheme.names(d, block, step)


@pytest.mark.parametrize(
    "d, block, first",
    [(128, 16, [0, 16, 32, 48, 64, 80, 96, 112]), (256, 8, [0, 32, 64, 96, 128, 160, 192, 224])],
)
def test_elements_of_the_first_lane(d, block, first):
    """The arithmetic of Held, read from the kernel's text."""
    vec = min(block, 8)
    per_row = block // vec
    assert "lane / PER_ROW + i * (32 / PER_ROW)" in SOURCE
    assert [0 // per_row + i * (32 // per_row) for i in range(d * per_row // 32)] == first
