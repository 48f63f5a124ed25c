"""The launchers of products: the parts `gemm` and `tensor`; see launcher_cases.py."""

from launcher_cases import FLOATS, Case, Spec, bf16, f32, i32, place

import cudatut as ct
from cudatut.book.gemm.kernels import sgemm, skinny
from cudatut.book.tensor.gemm import epilogue, fp8_product, gemm, grouped_product, tf32_product
from cudatut.book.tensor.ladder import ladder


def cases(n: int) -> dict[str, Case]:
    """By a name of each: with n rows."""
    found = {}

    def case(name, launcher, launch, arrays, **more):
        found[name] = Case(place(launcher), launch, arrays, **more)

    # ------------------------------------------------------------------------------------------------ bf16 on Hopper
    m, k, columns = n, 64, 40
    products = {
        "bf16": (bf16(m, k), bf16(k, columns), bf16(m, columns, written=True, kinds=FLOATS), {}),
        "A and B transposed": (
            bf16(k, m), bf16(columns, k), f32(m, columns, written=True, kinds=FLOATS),
            {"transpose_a": True, "transpose_b": True, "alpha": 2.0, "beta": 0.5},
        ),
        "alpha = 0": (bf16(m, k), bf16(k, columns), bf16(m, columns, written=True, kinds=FLOATS), {"alpha": 0.0}),
        "fp16": (
            Spec("float16", (m, k)), Spec("float16", (k, columns)), Spec("float16", (m, columns), written=True), {},
        ),
        "threads read": (
            bf16(m, k), bf16(k, columns), bf16(m, columns, written=True, kinds=FLOATS),
            {"plan": gemm.Plan(gemm.PLAIN, 1, max(1, ct.cdiv(m, 128)), 0, True)},
        ),
        "threads read, alpha = 0": (
            bf16(m, k), bf16(k, columns), bf16(m, columns, written=True, kinds=FLOATS),
            {"plan": gemm.Plan(gemm.PLAIN, 1, max(1, ct.cdiv(m, 128)), 0, True), "alpha": 0.0},
        ),
    }  # fmt: skip
    for name, (a, b, c, how) in products.items():
        case(
            f"gemm, {name}", gemm.prepare,
            lambda given, how=how: gemm.prepare(given["A"], given["B"], given["C"], **how)(),
            {"A": a, "B": b, "C": c},
        )  # fmt: skip

    def fused(given):
        end = epilogue.Epilogue("gelu-tanh", given["bias"], given["residual"])
        gemm.prepare(given["A"], given["B"], given["C"], beta=1.0, epilogue=end)()

    case(
        "gemm with an epilogue", gemm.prepare, fused,
        {
            "A": bf16(m, k), "B": bf16(k, columns), "C": bf16(m, columns, written=True),
            "bias": bf16(columns, align=4, optional=True), "residual": bf16(m, columns, optional=True),
        },
        over=frozenset({("C", "residual")}),
    )  # fmt: skip

    def after(given):
        end = epilogue.Epilogue("gelu-erf", given["bias"], given["residual"])
        epilogue.after(given["C"], given["out"], end)()

    case(
        "an epilogue after the product", epilogue.after, after,
        {
            "C": bf16(m, columns, align=16), "out": bf16(m, columns, align=16, written=True),
            "bias": bf16(columns, align=16, optional=True), "residual": bf16(m, columns, align=16, optional=True),
        },
        over=frozenset({("out", "C"), ("out", "residual")}),
    )  # fmt: skip
    rung = ct.read_rung("tensor/ladder/mma_sync.cu")
    case(
        "a rung", ladder.launcher,
        lambda a: ladder.launcher(rung, a["A"], a["B"], a["C"], kernel=ct.Kernel(rung.path, rung.kernel))(),
        {
            "A": bf16(m, k, align=16), "B": bf16(k, columns, align=16),
            "C": bf16(m, columns, align=16, written=True),
        },
        empty=None,
    )  # fmt: skip

    # ------------------------------------------------------------------------------------------------ other types
    for turned, b in ((False, f32(k, columns)), (True, f32(columns, k, align=16))):
        case(
            f"tf32, transpose_b={turned}", tf32_product.prepare,
            lambda a, turned=turned: tf32_product.prepare(a["A"], a["B"], a["C"], transpose_b=turned)(),
            {"A": f32(m, k, align=16), "B": b, "C": f32(m, columns, written=True)},
            kernels=1 if turned else 2,
        )  # fmt: skip

    def codes(*shape):
        return Spec("uint8", shape, align=16)

    def e4m3(by_a, by_b):
        def launch(a):
            first = fp8_product.Scaled(a["A"], a["scales of A"], by_a)
            second = fp8_product.Scaled(a["B"], a["scales of B"], by_b)
            fp8_product.prepare(first, second, a["C"])()

        return launch

    of_a, of_b = (
        fp8_product.shape_of_scales(m, k, "rows"),
        fp8_product.shape_of_scales(columns, k, "tiles"),
    )
    for (by_a, by_b), scales in {
        ("tensor", "tensor"): ((1,), (1,)),
        ("rows", "tiles"): (of_a, of_b),
    }.items():
        case(
            f"fp8 by {by_a}", fp8_product.prepare, e4m3(by_a, by_b),
            {
                "A": codes(m, k), "scales of A": f32(*scales[0], align=16), "B": codes(columns, k),
                "scales of B": f32(*scales[1], align=16),
                "C": bf16(m, columns, align=16, written=True, kinds=FLOATS),
            },
        )  # fmt: skip
    for by in fp8_product.LAYOUTS:
        x = {"x": bf16(m, k, align=16, kinds=FLOATS, free=(0,))}
        case(
            f"quantizer by {by}", fp8_product.quantizer,
            lambda a, by=by: fp8_product.quantizer(a["x"], by)(), x, empty=None,
        )  # fmt: skip
        case(
            f"quantize by {by}", fp8_product.quantize, lambda a, by=by: fp8_product.quantize(a["x"], by), x,
            empty=None,
        )  # fmt: skip

    # ------------------------------------------------------------------------------------------------ many sizes
    case(
        "grouped", grouped_product.prepare, lambda a: grouped_product.prepare(**a)(),
        {
            "x": bf16(m, k, align=16), "weights": bf16(3, columns, k, align=16), "ends": i32(3),
            "out": bf16(m, columns, align=16, written=True),
        },
    )  # fmt: skip
    some = {}
    for number, rows in enumerate((m, 2)):
        some[f"A{number}"] = bf16(rows, k, align=16)
        some[f"B{number}"] = bf16(columns, k, align=16)
        some[f"C{number}"] = bf16(rows, columns, align=16, written=True)
    case(
        "a list of products", grouped_product.prepare_list,
        lambda a: grouped_product.prepare_list([tuple(a[f"{x}{i}"] for x in "ABC") for i in range(2)])(), some,
        empty=1,
    )  # fmt: skip

    # ------------------------------------------------------------------------------------------------ fp32
    for turned_a, turned_b in ((False, False), (True, True), (False, True)):
        arrays = {
            "A": f32(*((k, m) if turned_a else (m, k))),
            "B": f32(*((columns, k) if turned_b else (k, columns))),
            "C": f32(m, columns, written=True),
        }
        for name in ("prepare", "sgemm"):

            def call(a, name=name, how=(1.5, 0.5, turned_a, turned_b)):
                run = getattr(sgemm, name)(a["A"], a["B"], a["C"], *how)
                return run and run()

            case(f"{name}, {turned_a=}, {turned_b=}", getattr(sgemm, name), call, arrays)

    def product_of(a, alpha=1.0, beta=0.0):
        """The arrays as memory: rows of C 44 words apart, of which 40 are written."""
        return m, columns, k, alpha, a["A"], k, a["B"], columns, beta, a["C"], 44

    flat = {
        "A": f32(m * k, free=(None,)), "B": f32(k * columns, free=(None,)),
        "C": f32(max(0, (m - 1) * 44 + columns) if m else 0, free=(None,), written=True),
    }  # fmt: skip
    case("launcher", sgemm.launcher, lambda a: sgemm.launcher(*product_of(a))(), flat)
    case("launch", sgemm.launch, lambda a: sgemm.launch(*product_of(a)), flat)
    case(
        "skinny", skinny.launcher,
        lambda a: skinny.launcher(
            sgemm.Product(m, 4, k, 1.0, a["A"], k, a["B"], 4, 0.0, a["C"], 4), sgemm.Workspace()
        )(),
        {"A": f32(m * k, free=(None,)), "B": f32(k * 4, free=(None,)), "C": f32(m * 4, free=(None,), written=True)},
    )  # fmt: skip
    return found


# Functions with a grid that are no launchers for others' arrays.
NOT_OF_OTHERS = {
    "tensor.grouped.routing.random_matrix": "makes the array that it fills",
    "tensor.cutlass.gemm.multiply": "is compiled by CuTe DSL; `prepare` beside it says what it takes",
    "primitives.random.launch.pi": "has arrays of its own",
    "primitives.random.launch.price_launcher": "has arrays of its own",
    "measure.l2.read_rate": "measures memory of its own",
    "llm.vllm_kernel.scheme.longest_context": "tries how much may be launched, on arrays of its own",
    **dict.fromkeys(
        (
            "images.depthwise.launch.channels",
            "images.depthwise.launch.planes",
            "images.direct.launch.naive",
            "images.direct.launch.several",
            "images.direct.launch.tiled",
            "images.direct.launch.window",
            "images.im2col.launch.convolve",
            "images.im2col.launch.im2col",
            "images.implicit_gemm.launch.bf16",
            "images.implicit_gemm.launch.boxes",
            "images.implicit_gemm.launch.gather",
            "images.implicit_gemm.launch.lines",
            "images.implicit_gemm.launch.maps",
            "images.implicit_gemm.launch.offsets",
            "images.implicit_gemm.launch.packed",
            "images.implicit_gemm.launch.taps",
            "images.implicit_gemm.launch.turned",
            "images.pixels.launch.brighter",
            "images.pixels.launch.swap_channels",
            "images.pixels.launch.swap_four",
            "images.pixels.launch.swap_sixteen",
            "images.pixels.launch.swap_turned",
            "images.pixels.launch.to_chw",
            "images.pixels.launch.to_chw_four",
            "images.postprocess.postprocess.decode",
            "images.postprocess.postprocess.nms",
            "images.preprocess.preprocess.letterbox",
            "images.preprocess.steps.four_launches",
            "images.resize.resize.bilinear",
            "images.resize.resize.letterbox",
            "images.resize.resize.nearest",
            "images.resize.resize.wrong",
            "images.warp.warp.by_texture",
            "images.warp.warp.forward",
            "images.warp.warp.four",
            "images.warp.warp.pad",
            "images.warp.warp.warp",
            "images.winograd.launch.inputs",
            "images.winograd.launch.multiply",
            "images.winograd.launch.results_of",
        ),
        "refuses in the tests of its chapter: tests/gpu/test_images_*.py",
    ),
    **dict.fromkeys(
        (
            f"memory.dynamic.limited.{name}"
            for name in ("depth", "early", "memory", "pending", "tails")
        ),
        "launches on arrays of its own, in a process of its own",
    ),
    "memory.overlap.pipeline.enqueue": "takes what `pieces` beside it cuts",
    "memory.streams.work.plan_ms": "times kernels without arrays",
    "memory.unified.touches.by_gpu": "walks what `blocks_of_2mb` beside it allocates",
    "reduction.one_launch.latency.handover_ns": "measures memory of its own",
    "reduction.one_launch.latency.latency_ns": "measures memory of its own",
}
