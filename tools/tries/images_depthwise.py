"""Try-out of the depthwise kernels: right on ragged shapes, then beside cuDNN, PyTorch and a copy on all depthwise layers of three networks.

Run from the root of a checkout on the GPU machine: python tools/tries/images_depthwise.py [check] [time] [variants]

Nothing here has been measured yet. Expected, N = 32, H200 (a copy brings some 4.2 TB/s, useful bytes in plus out; cuDNN measured
2026-11-30: fp32 66.1 us on 3 x 3, 112 x 112, 32 channels, 333 us on 7 x 7, 56 x 56, 96 channels (PyTorch 319); bf16 26.8 and 75.7 us):
  fp32 3 x 3   103 MB: 25 us a copy; loads of L1 take 8 us of LSU time for it, FMAs 2: memory counts, 0.9 of a copy, 28 us
  fp32 7 x 7   77 MB: 18 us a copy; 0.47 G FMAs are 16 us at their rate; both overlap badly at 12 warps an SM: 30 us
  bf16 3 x 3   51 MB: 12 us a copy; issue slots some 6 us: 0.85 of a copy, 15 us
  bf16 7 x 7   39 MB: 9 us a copy; FMAs 16 us, with conversions and loads 25 us of issue slots: 28 us
  Small images (7 x 7) hold 6 MB: launch and ramp, 4 us at least.
Variants decide: words of a vector against more threads, rows of a thread (7 or 14 against 4), rows in advance, blocks of an SM.
"""

import sys
import time
import traceback

import numpy as np

import cudatut as ct
from cudatut.book.images.depthwise import launch
from cudatut.book.images.depthwise.launch import Part, Strip
from cudatut.book.images.shapes import Shape, reference
from cudatut.book.images.scoreboard.networks import NETWORKS
from cudatut.book.numbers.bf16 import to_bf16, to_float
from cudatut.book.rivals import cudnn_conv

START, LIMIT_S = time.perf_counter(), 45
WHAT = sys.argv[1:] or ["check", "time", "variants"]
STRIPS = {
    3: (Strip(1, 7, 2, 4), Strip(2, 7, 2, 4), Strip(4, 7, 2, 4), Strip(4, 7, 2, 6), Strip(4, 7, 1, 6), Strip(4, 4, 2, 6), Strip(4, 14, 2, 4), Strip(1, 4, 2, 8)),
    5: (Strip(1, 7, 1, 3), Strip(2, 7, 1, 3), Strip(2, 7, 1, 4), Strip(2, 4, 1, 5)),
    7: (Strip(1, 7, 1, 3), Strip(2, 7, 1, 3), Strip(4, 7, 1, 3), Strip(4, 7, 0, 3), Strip(4, 4, 1, 4), Strip(2, 7, 1, 4)),
}  # fmt: skip
PARTS = {
    3: (Part(4), Part(4, ahead=True), Part(4, blocks=1), Part(8, 4), Part(2, blocks=3), Part(2, 14), Part(4, 4, blocks=3)),
    5: (Part(4), Part(4, blocks=1), Part(2, blocks=3)),
    7: (Part(4), Part(4, blocks=1), Part(8, 4), Part(2, blocks=3), Part(2, 7, blocks=4), Part(2, 14), Part(4, 14, blocks=1)),
}  # fmt: skip
VARIED = [
    ("MobileNetV2", "features.1.depthwise"), ("MobileNetV2", "features.15.depthwise"), ("ConvNeXt-T", "features.1.0.depthwise"),
    ("ConvNeXt-T", "features.5.0.depthwise"), ("EfficientNet-B0", "features.5.1.depthwise"),
]  # fmt: skip
failed = 0


def layers():
    """Name -> Shape, each once."""
    found = {}
    for network in ("MobileNetV2", "ConvNeXt-T", "EfficientNet-B0"):
        for layer in NETWORKS[network].layers:
            shape = Shape(32, layer.channels, *layer.size, *layer[5:])
            if not launch.refuses(shape) and shape not in found.values():
                found[f"{network} {layer.name}"] = shape
    return found


def ragged():
    for window in (3, 5, 7):
        for stride in (1, 2):
            for size in ((1, 1), (7, 7), (9, 14), (14, 12), (5, 70), (113, 33)):
                for channels in (1, 6, 8, *([136] if max(size) < 50 else ())):
                    for pad in ((window // 2,) * 2, (9, 0)):
                        shape = Shape(
                            2,
                            channels,
                            *size,
                            channels,
                            (window,) * 2,
                            (stride,) * 2,
                            pad,
                            groups=channels,
                        )
                        if min(shape.out) > 0:
                            yield shape
    yield Shape(2, 5, 7, 9, 5, (3, 2), pad=(1, 0), groups=5)
    yield Shape(1, 6, 5, 6, 6, (3, 3), pad=(9, 8), dilation=(7, 8), groups=6)


def arrays(shape, seed=0, dtype="int"):
    rng = ct.rng(seed)
    sizes = (
        (shape.images, shape.channels, shape.height, shape.width),
        (shape.filters, 1, *shape.window),
    )
    x, w = (
        np.resize(
            rng.integers(-4, 5, 999_983)
            if dtype == "int"
            else rng.standard_normal(999_983, "float32"),
            n,
        )
        for n in sizes
    )
    return x.astype("float32"), w.astype("float32")


def turn(a):
    return np.ascontiguousarray(a.transpose(0, 2, 3, 1))


def given(shape, last, dtype="int"):
    x, w = arrays(shape, dtype=dtype)
    out = (shape.images, shape.filters, *shape.out)
    if last:
        x, w, out = to_bf16(turn(x)), to_bf16(turn(w)), (out[0], *out[2:], out[1])
    y = ct.empty(out, "uint16" if last else "float32")
    return shape, ct.to_device(x), ct.to_device(w), y


def failing(what, call):
    global failed
    try:
        return call()
    except Exception as error:
        failed += 1
        print(f"FAILED {what}: {type(error).__name__}: {str(error)[:300]}", flush=True)
        if "illegal" in str(error) or "launch failed" in str(error):
            traceback.print_exc()
            raise SystemExit("the context is lost") from None
        return None


def names():
    """Sources and instances that will be wanted."""
    found = set()
    shapes = [*(ragged() if "check" in WHAT else ()), *layers().values()]
    for shape in shapes:
        if launch.general(shape):
            continue
        head = shape.window[0], shape.stride[0]
        strips, parts = {launch.strip(shape, True)}, {launch.part_of(shape, True)} - {None}
        if shape in [layers()[" ".join(x)] for x in VARIED] and "variants" in WHAT:
            strips |= {x for x in STRIPS[head[0]] if x.across <= launch.strip(shape, True).across}
            parts |= set(PARTS[head[0]])
        found |= {("planes", f"planes<{','.join(map(str, (*head, *x)))}>") for x in strips}
        for x in parts:
            rest = *head, *x[:2], str(x.ahead).lower(), x.blocks
            found.add(("channels", f"channels<{','.join(map(str, rest))}>"))
    return found | {("any", "any<float,false>"), ("any", "any<__nv_bfloat16,true>")}


def compile_all():
    ct.device()

    jobs = [(f"{launch.FOLDER}/{source}.cu", name) for source, name in sorted(names())]
    for job, error in ct.compile_ahead(jobs).items():
        print("FAILED to compile", job, str(error)[:300])
    print(f"compiled {len(jobs)} after {time.perf_counter() - START:.0f} s", flush=True)


def check():
    done = 0
    for shape in ragged():
        x, w = arrays(shape)
        expected = reference(shape, x, w)
        for last in (False, True):
            of = given(shape, last)

            def one(of=of, last=last, expected=expected):
                ct.poison(of[3])
                (launch.channels if last else launch.planes)(*of)()
                found = of[3].get()
                wanted = to_float(to_bf16(turn(expected).astype("float32"))) if last else expected
                if not np.array_equal(to_float(found) if last else found, wanted):
                    raise ValueError("wrong")
                return True

            done += bool(failing((shape, last), one))
    print(f"{done} right, {failed} failed after {time.perf_counter() - START:.0f} s", flush=True)


def copy(of):
    """The driver's copy of half of the bytes that must move."""
    import pycuda.driver as cuda

    count = (of[1].nbytes + of[3].nbytes) // 2
    a, b = ct.empty(count, "uint8"), ct.empty(count, "uint8")

    def run():
        cuda.memcpy_dtod_async(int(b.gpudata), int(a.gpudata), count)

    run.operands = a, b
    return run


def contest(name, shape, last, variants):
    if time.perf_counter() - START > LIMIT_S:
        print("out of time before", name)
        return
    of = given(shape, last, "normal")
    kind = "bf16" if last else "fp32"
    call = launch.channels if last else launch.planes
    runs = {"ours": call(*of)}
    runs["ours"]()
    mine = of[3].get()
    if not variants:
        runs |= cudnn_conv.contestants(
            *of[1:], shape.stride, shape.pad, shape.dilation, shape.groups
        )
        runs["cuDNN"]()
        theirs = of[3].get()
        a, b = ((to_float(a) if last else a).astype("float64") for a in (mine, theirs))
        off = np.abs(a - b).max() / np.abs(b).max()
        if not off < (1e-2 if last else 1e-5):
            print(f"WRONG {name} {kind}: off by {off:.2e} of the largest")
        made = failing("copy", lambda: copy(of))
        if made:
            runs["copy"] = made
    for one in variants:
        made = failing((name, one), lambda one=one: call(*of, one))
        if made:
            made()
            if not np.array_equal(of[3].get(), mine):
                print("DIFFERS", name, one)
            runs[str(tuple(one))] = made
    ct.bench(
        runs, bytes=of[1].nbytes + of[3].nbytes, name=f"{name}, {kind}", rounds=12, limit=False
    )


failing("compile", compile_all)
if "check" in WHAT:
    failing("check", check)
if "variants" in WHAT:
    for network, layer in VARIED:
        shape = layers()[f"{network} {layer}"]
        some = [x for x in STRIPS[shape.window[0]] if x.across <= launch.strip(shape, True).across]
        for last in (False, True):
            failing(
                layer,
                lambda n=layer, s=shape, last=last, some=some: contest(
                    n, s, last, PARTS[s.window[0]] if last else some
                ),
            )
if "time" in WHAT:
    for last in (False, True):
        for name, shape in layers().items():
            failing(name, lambda n=name, s=shape, last=last: contest(n, s, last, ()))
print(f"done after {time.perf_counter() - START:.0f} s")
