"""The drawings of the chapter on vLLM: its processes, and the tokens of each step under two sets of rules, as recorded."""

from cudatut.site import references
from cudatut.site.drawing import Svg, figure, legend, tr

EXAMPLE = "llm/reading_vllm"


def processes() -> str:
    """Who does what for a request in V1, version 0.33.0, and what they send each other."""
    s = Svg(720, 404)
    inside, wide = 40, 380
    for y, high, name, boxes in (
        (
            6,
            104,
            tr("API server", "API 服务器"),
            (
                "InputProcessor",
                tr("OutputProcessor,\ndetokenizer", "OutputProcessor、\n词元转文本"),
            ),
        ),
        (
            150,
            104,
            tr("engine core: EngineCore", "引擎核心：EngineCore"),
            ("Scheduler", "KVCacheManager,\nBlockPool"),
        ),
        (
            294,
            104,
            tr("a worker for each GPU: Worker", "每个 GPU 一个 worker：Worker"),
            (
                "GPUModelRunner",
                tr("weights, KV cache\n(on the GPU)", "权重、KV 缓存\n（在 GPU 上）"),
            ),
        ),
    ):
        s.rect(inside, y, wide, high, "hollow muted")
        s.text_from(inside + 12, y + 22, name, "bold", 13)
        for i, (box, hue) in enumerate(zip(boxes, ("c1", "c3"))):
            s.rect(inside + 12 + 184 * i, y + 36, 172, 54, hue, box, size=12)
    down, up = inside + 98, inside + 282
    for y, there, back in (
        (110, "EngineCoreRequest", "EngineCoreOutputs"),
        (254, "SchedulerOutput", "ModelRunnerOutput"),
    ):
        s.arrow(down, y, down, y + 40).arrow(up, y + 40, up, y)
        s.text_from(down + 8, y + 25, there, "muted", 11)
        s.text_from(up + 8, y + 25, back, "muted", 11)
    for y, words in (
        (
            30,
            tr(
                "HTTP; text to tokens,\ntokens to text;\nstop strings",
                "HTTP；文本转词元，\n词元转文本；\n停止字符串",
            ),
        ),
        (130, tr("between processes: ZMQ", "进程之间：ZMQ")),
        (
            178,
            tr("a loop: who computes\nwhat, in which blocks", "一个循环：给谁算什么，\n用哪些块"),
        ),
        (274, tr("between processes:\na queue in shared memory", "进程之间：\n共享内存里的队列")),
        (
            330,
            tr(
                "arrays of a step, CUDA\ngraphs, sampling, guesses",
                "一步的数组、CUDA\ngraph、采样、猜测",
            ),
        ),
    ):
        s.text_from(inside + wide + 16, y, words, "muted", 12)
    alt = tr(
        "Three kinds of processes of vLLM. The API server turns text into tokens and back. It sends an EngineCoreRequest to the engine "
        "core and gets EngineCoreOutputs. The engine core schedules and manages blocks; it sends a SchedulerOutput to the workers and "
        "gets a ModelRunnerOutput. A worker for each GPU holds weights and KV cache and runs the model.",
        "vLLM 的三种进程。API 服务器在文本与词元之间转换，向引擎核心发送 EngineCoreRequest，收到 EngineCoreOutputs。引擎核心负责调度和管理块，"
        "向 worker 发送 SchedulerOutput，收到 ModelRunnerOutput。每个 GPU 有一个 worker，保存权重和 KV 缓存，运行模型。",
    )
    caption = tr(
        "The processes of vLLM 0.33.0. With a single GPU the worker lives in the process of the engine core.",
        "vLLM 0.33.0 的进程。只有一个 GPU 时，worker 就在引擎核心的进程里。",
    )
    return figure(s, alt=alt, caption=caption)


def _rules() -> list[dict[str, list[int]]]:
    """For prefill first and for mixed steps: what each request computes in each step, 0 for nothing."""
    found = (references.table(EXAMPLE, "setup", index) for index in (0, 1))
    return [
        {name: [tokens or 0 for tokens in steps.values()] for name, steps in rows.items()}
        for rows in found
    ]


def steps(budget: int = 8) -> str:
    """The recorded steps; budget: tokens of a mixed step, as the program sets it."""
    return draw(_rules(), budget)


def draw(rules: list[dict[str, list[int]]], budget: int) -> str:
    """A column for each step, as high as the tokens that it computes, in the colors of the requests."""
    names = (tr("prefill first", "提示优先"), tr("mixed", "混合"))
    totals = [[sum(step) for step in zip(*found.values())] for found in rules]
    most, count = max(map(max, totals)), max(map(len, totals))
    left, wide, high, top = 128, 54, 150, 26
    unit, told = high / most, []
    s = Svg(left + wide * count + 10, top + 2 * (high + 44) + 26)
    for k, (name, found, total) in enumerate(zip(names, rules, totals)):
        bottom = top + high + k * (high + 44)
        s.text_from(4, bottom - high / 2, name, "bold")
        for i, tokens in enumerate(total):
            x, y, tall = left + wide * i, bottom, 0.0
            for color, values in zip(("c1", "c3", "c5"), found.values()):
                if values[i]:
                    tall = values[i] * unit
                    y -= tall
                    s.rect(x + 6, y, wide - 12, tall, color, rx=0)
            s.text(x + wide / 2, y + 15 if tall > 20 else y - 5, tokens, size=12)
            s.text(x + wide / 2, bottom + 16, i + 1, "muted", size=12)
        s.line(left, bottom, left + wide * count, bottom, "muted")
        told.append(f"{name}: {', '.join(map(str, total))}")
    s.text_to(left - 10, top + high + 16, tr("step", "步"), "muted", 12)
    limit = top + 2 * high + 44 - budget * unit
    s.line(left, limit, left + wide * count, limit, "dash warn")
    s.text_to(left - 8, limit + 4, tr(f"budget {budget}", f"预算 {budget}"), "warn", 12)
    y = top + 2 * (high + 44) + 2
    legend(s, left, y, zip(("c1", "c3", "c5"), rules[0]), step=90, size=13, wide=20, high=16)
    alt = tr("Tokens computed in each step. ", "每一步计算的词元数。") + "; ".join(told) + "."
    caption = tr(
        "Tokens of each step of the program, from its recording. With prefill first, the long prompt of C has a step of its own, "
        "and A and B get no token in it. In mixed steps it is cut into pieces beside them.",
        "程序每一步的词元数，取自运行记录。提示优先时，C 的长提示独占一步，A 和 B 在这一步没有生成词元。混合时，提示切成几段，与 A、B 同在一步。",
    )
    return figure(s, alt=alt, caption=caption)
