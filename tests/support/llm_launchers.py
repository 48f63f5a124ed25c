"""The launchers of the part `llm`, and attention of `tensor`: see launcher_cases.py."""

import functools

from launcher_cases import FLOATS, Call, Case, Spec, bf16, f32, i32, place

from cudatut.book.llm.attention import steps as attention_steps
from cudatut.book.llm.kernels import (
    activation,
    fused,
    gemv,
    linear,
    linear_hopper,
    linear_qkv,
    norms,
    rope,
    row_softmax,
    sampling,
)
from cudatut.book.llm.kernels.attention import (
    decode,
    flash,
    flash_hopper_paged,
    flash_parts,
)
from cudatut.book.llm.layers import separate
from cudatut.book.tensor.attention import flash_hopper


def cases(n: int, d: int = 64) -> dict[str, Case]:
    """By a name of each: with n rows, tokens, sequences or copies, and heads of d elements."""
    found = {}

    def case(name, launcher, numbers, arrays, **more):
        found[name] = Case(place(launcher), Call(launcher, numbers), arrays, **more)

    # ------------------------------------------------------------------------------------------------ rows of numbers
    case(
        "swiglu", activation.swiglu, {},
        {"gate_up": bf16(n, 64, rows=1), "out": bf16(n, 32, rows=1, written=True)},
    )  # fmt: skip
    case(
        "add", separate.add, {},
        {"x": f32(n, 64, align=16, written=True), "added": bf16(n, 64, align=8)},
    )  # fmt: skip
    case(
        "two_steps", separate.two_steps, {},
        {"gate_up": bf16(n, 64, align=16), "out": bf16(n, 32, align=16, written=True)},
    )  # fmt: skip
    for stored, table in (
        ("bf16", bf16(50, 64, align=8, free=(0,))), ("Q8_0", Spec("uint8", (50, 68), align=2, free=(0,))),
    ):  # fmt: skip
        case(
            f"embed, {stored}", activation.embed, {},
            {
                "tokens": i32(n), "embedding": table, "x": f32(n, 64, align=16, written=True),
                "drawn": i32(7, free=(0, None), optional=True),
            },
        )  # fmt: skip
    case(
        "gather", activation.gather, {},
        {"indices": i32(n), "x": f32(5, 64, align=16, free=(0,)), "out": f32(n, 64, align=16, written=True)},
    )  # fmt: skip
    x, in_place = Spec("float32", (n, 64), rows=1, kinds=FLOATS), bf16(n, 64, rows=1, kinds=FLOATS)
    weight, out = f32(64, kinds=FLOATS), bf16(n, 64, rows=1, written=True)
    over = frozenset({("out", "x")})
    case(
        "rms_norm", norms.rms_norm, {"eps": 1e-5},
        {"x": in_place, "weight": weight, "out": out}, over=over,
    )  # fmt: skip
    case(
        "rms_norm of fp32", norms.rms_norm, {"eps": 1e-5},
        {"x": x, "weight": weight, "out": out},
    )  # fmt: skip
    case(
        "add_rms_norm", norms.add_rms_norm, {"eps": 1e-5},
        {"x": x._replace(written=True), "added": in_place, "weight": weight, "out": out},
    )  # fmt: skip
    case(
        "layer_norm", norms.layer_norm, {"eps": 1e-5},
        {"x": in_place, "weight": f32(64, kinds=FLOATS), "bias": f32(64), "out": out}, over=over,
    )  # fmt: skip
    for by in row_softmax.RUNGS:
        case(
            f"softmax, {by}", row_softmax.softmax, {"by": by},
            {"x": x, "out": x._replace(written=True), "lengths": i32(n, optional=True)},
            over=over if by in row_softmax.RUNGS[2:] else frozenset(),
        )  # fmt: skip
    case(
        "sample", sampling.sample, {"vocab": 64},
        {
            "logits": f32(n, 70, rows=1, free=(1,)), "temperature": f32(n), "top_k": i32(n), "top_p": f32(n),
            "seed": Spec("uint64", (n,)), "request": i32(n), "position": i32(n), "tokens": i32(n, written=True),
            "best": Spec("uint64", (n,), free=(None,), written=True),
            "tickets": Spec("uint32", (n,), free=(None,), written=True),
        },
    )  # fmt: skip

    # ------------------------------------------------------------------------------------------------ keys and values
    heads, kv_heads, slots = 4, 2, 48
    wide = (heads + 2 * kv_heads) * d

    def cache(written, align, kind="uint16", rows=0, leading=(slots,)):
        spec = Spec(kind, (*leading, kv_heads, d), written=written, align=align, rows=rows)
        both = {"keys": spec, "values": spec}
        return both | ({"scales": f32(2, kv_heads)} if kind == "uint8" else {})

    def turned(align_q, align, align_table, kind="uint16", within=False):
        return cache(True, align, kind) | {
            "positions": i32(n), "slots": i32(n), "table": f32(99, d // 2, 2, align=align_table, free=(0,)),
            "q": bf16(n, heads * d, rows=1, align=align_q, written=True, optional=within),
        }  # fmt: skip

    qkv = bf16(n, wide, rows=1, align=16)
    for kind in ("uint16", "uint8"):
        case(
            f"rope_and_store, {kind}", rope.rope_and_store, {},
            {"qkv": qkv, **turned(16, 16, 16, kind, within=True)},
        )  # fmt: skip
        case(
            f"copy_blocks, {kind}", rope.copy_blocks, {"block_size": 16},
            {**{name: spec for name, spec in cache(True, 16, kind).items() if name != "scales"}, "copies": i32(n, 2, free=(0,))},
        )  # fmt: skip
    within = turned(16, 16, 16)
    del within["q"]
    case(
        "rope_and_store within", rope.rope_and_store, {},
        {"qkv": qkv._replace(written=True), **within},
    )  # fmt: skip

    # ------------------------------------------------------------------------------------------------ products
    for stored, columns in (("uint16", 64), ("uint8", 40)):
        matrix = Spec(stored, (40, columns), align=16)
        for add, out in (
            (False, bf16(n, 40, written=True, kinds=FLOATS)),
            (True, f32(n, 40, written=True)),
        ):
            case(
                f"gemv, {stored}, {add=}", gemv.gemv, {"add": add},
                {"x": bf16(n, 64, align=16), "weights": matrix, "out": out},
            )  # fmt: skip
    for how, outputs, out in (
        ({}, 41, f32(n, 41, align=8, written=True, kinds=FLOATS)),
        ({"add": True, "split": 4}, 40, f32(n, 40, align=8, written=True)),
        ({"swiglu": True}, 48, bf16(n, 24, align=8, written=True)),
    ):
        case(
            f"linear, {how}", linear.linear, how,
            {"x": bf16(n, 64, align=16), "weights": bf16(outputs, 64, align=16), "out": out},
        )  # fmt: skip
    normed = {"x": f32(n, 64, align=16), "weight": f32(64, align=16)}
    for kind in ("uint16", "uint8"):
        case(
            f"linear_qkv, {kind}", linear_qkv.linear_qkv, {},
            {"x": bf16(n, 64, align=16), "weights": bf16(wide, 64, align=16), **turned(4, 4, 8, kind)},
        )  # fmt: skip
        case(
            f"norm_qkv, {kind}", fused.norm_qkv, {"eps": 1e-5},
            {**normed, "weights": Spec("uint8", (wide, 68), align=16), **turned(4, 4, 8, kind)},
        )  # fmt: skip
    case(
        "norm_gate_up", fused.norm_gate_up, {"eps": 1e-5},
        {**normed, "weights": bf16(48, 64, align=16), "out": bf16(n, 24, written=True)},
    )  # fmt: skip

    narrow = linear_hopper.Tile(1, 32, 4)
    factors = {"x": bf16(n, 64, rows=1, align=16), "weights": bf16(48, 64, rows=1, align=16)}
    case(
        "stored", linear_hopper.stored, {"tile": narrow},
        {**factors, "y": f32(n, 48, align=8, written=True)},
    )  # fmt: skip

    def with_norm(launcher):
        @functools.wraps(launcher)
        def call(**named):
            of = {name: named.pop(f"norm.{name}", None) for name in ("weight", "h", "squares")}
            launcher(**named, norm=linear_hopper.Norm(**of, eps=1e-5))

        return call

    case(
        "added", with_norm(linear_hopper.added), {"tile": narrow},
        {
            **factors, "y": f32(n, 48, align=8, written=True), "norm.weight": f32(48, align=8),
            "norm.h": bf16(n, 48, align=4, written=True), "norm.squares": f32(2 * n, free=(None,), written=True),
        },
    )  # fmt: skip
    case(
        "added without a norm", linear_hopper.added, {"tile": narrow},
        {**factors, "y": f32(n, 48, align=8, written=True)},
    )  # fmt: skip
    case(
        "gated", with_norm(linear_hopper.gated), {"tile": narrow, "squares": 32},
        {
            **factors, "out": bf16(n, 24, align=4, written=True), "norm.squares": f32(2 * n, free=(None,)),
        },
    )  # fmt: skip
    case(
        "product", attention_steps.product, {"transposed": True},
        {
            "a": bf16(heads, n, 64), "b": bf16(kv_heads, 40, 64, free=(0,)),
            "out": f32(heads, n, 40, written=True, kinds=FLOATS),
        },
    )  # fmt: skip

    # ------------------------------------------------------------------------------------------------ attention
    need = decode.sizes(n, heads, kv_heads, d, slots)
    ends = {
        "out": bf16(n, heads, d, align=16, written=True), "lse": f32(n, heads, written=True),
        "partials": f32(need.partials, align=16, free=(None,), written=True),
        "tickets": Spec("uint32", (need.tickets,), free=(None,), written=True),
    }  # fmt: skip
    queries = {"q": bf16(n, heads, d, align=4, rows=1), "lengths": i32(n)}
    for kind in ("uint16", "uint8"):
        case(
            f"decode.paged, {kind}", decode.paged, {"block_size": 16, "longest": slots},
            {**queries, **cache(False, 16, kind), "tables": i32(n, 3, free=(1,)), **ends},
        )  # fmt: skip
        case(
            f"decode.contiguous, {kind}", decode.contiguous, {"longest": slots},
            {**queries, **cache(False, 16, kind, leading=(n, slots)), **ends},
        )  # fmt: skip

    apart = (("keys", "values"),)
    both = {
        "keys": bf16(n, 9, kv_heads, d, rows=2, align=16),
        "values": bf16(n, 9, kv_heads, d, rows=2, align=16),
    }
    side_by_side = {
        "q": bf16(n, 7, heads, d, rows=2, align=16), **both,
        "out": bf16(n, 7, heads, d, rows=2, align=16, written=True),
        "lse": f32(n, 7, heads, written=True, optional=True),
    }  # fmt: skip
    case(
        "flash.contiguous", flash.contiguous, {"causal": True}, side_by_side, apart=apart,
    )  # fmt: skip
    case(
        "flash_hopper.attention", flash_hopper.attention, {"plan": flash_hopper.plan_for(64, False)}, side_by_side,
        apart=apart,
    )  # fmt: skip
    timed = flash_hopper.plan_for(64, False)._replace(timed=True)
    case(
        "flash_hopper.attention, timed", flash_hopper.attention, {"plan": timed},
        side_by_side | {"times": Spec("uint32", (timed.consumers, 64, 5), written=True)}, apart=apart,
    )  # fmt: skip
    items, parts = 2 * n, 2
    tile = flash.tile_for(d)
    batch = {
        "q": bf16(n, heads, d, rows=1, align=16), "out": bf16(n, heads, d, rows=1, align=16, written=True),
        "starts": i32(n + 1), "lengths": i32(n), "tables": i32(n, 3, free=(1,)), "work": i32(items, 2, free=(0,)),
        "lse": f32(n, heads, written=True, optional=True),
    }  # fmt: skip
    for kind in ("uint16", "uint8"):
        arrays = batch | cache(False, 16, kind, rows=1)
        case(
            f"flash.paged, {kind}",
            flash.paged,
            {"block_size": 16},
            arrays,
            apart=apart,
        )
        room = items * heads * parts * tile.bm * (tile.d + 2)
        of_parts = {
            **arrays, "work": i32(items, 2, free=(0,)), "partials": f32(room, align=16, free=(None,), written=True),
        }  # fmt: skip
        case(
            f"flash_parts.paged, {kind}", flash_parts.paged, {"block_size": 16, "parts": parts}, of_parts, kernels=2,
            apart=apart,
        )  # fmt: skip
    case(
        "flash_hopper_paged.paged", flash_hopper_paged.paged, {"block_size": 16}, batch | cache(False, 16, rows=1),
        apart=apart,
    )  # fmt: skip
    return found
