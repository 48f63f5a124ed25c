# ---
# jupyter:
#   cudatut:
#     title: {en: "The engine beside the reference", zh: "引擎与参考实现"}
#     requires: sm_80
#     extra: llm
#     alone: false
#     timeout_s: 300
# ---

# %% [markdown]
# 200 prompts, 128 tokens each. The reference computes in fp32; its own tokens
# are fed at every step, to PyTorch in bf16 and to our engine.

# %% setup
import numpy as np

import cudatut as ct
from cudatut.book.llm.model import tokens
from cudatut.book.llm.engine.blocks import NaiveBlocks
from cudatut.book.llm.model.checkpoint import Checkpoint
from cudatut.book.llm.engine.engine import Engine
from cudatut.book.llm.model.fetch import fetch
from cudatut.book.llm.backends.gpu_backend import GpuBackend
from cudatut.book.llm.model.reference import Reference
from cudatut.book.llm.engine.request import Request
from cudatut.book.llm.engine.scheduler import Scheduler
from cudatut.book.llm.backends.torch_llama import Steps, TorchLlama, pytorch

torch = pytorch()  # None under a sanitizer: then nothing below runs
checkpoint = Checkpoint.open(fetch())
tokenizer = tokens.load(checkpoint)
SUBJECTS = (
    "rain", "glass", "the moon", "bread", "music", "iron", "bees", "rivers",
    "sleep", "paper", "salt", "trains", "money", "stars", "trees", "ice",
    "language", "bridges", "the heart", "maps",
)  # fmt: skip
ASKED = (
    "What is {}?",
    "Explain {} to a child in three sentences.",
    "Write a short poem about {}.",
    "List five facts about {}.",
    "Why does {} matter?",
    "Write a story that begins with {}.",
    "Who first studied {}, and when?",
    "Give me a question about {} and its answer.",
    "How would you describe {} in a letter?",
    "Write Python code that prints a sentence about {}.",
)
prompts = [
    tokenizer.chat([("user", asked.format(subject))])
    for asked in ASKED
    for subject in SUBJECTS
]
SAY = 128
LENGTH = max(map(len, prompts)) + SAY


# %% [markdown]
# Is the reference on the GPU the reference? Its logits after one prompt,
# beside those of NumPy.

# %% reference
if torch:
    one = TorchLlama(torch, checkpoint, torch.float32, 1, LENGTH)
    ids = torch.tensor([prompts[0]], device="cuda")
    where = torch.arange(len(prompts[0]), device="cuda")[None]
    found = one.forward(ids, where)[0].cpu().numpy()
    exact = Reference(checkpoint).forward(prompts[0])
    ct.check(found, exact, name="PyTorch in fp32", rtol=0, atol=5e-3)
    del one


# %% compare
def compared(logits, exact):
    """Of rows of logits: the largest error of each, and whether its first
    choice is another one.
    """
    error = (logits - exact).abs().amax(-1)
    other = logits.argmax(-1) != exact.argmax(-1)
    return error.cpu().numpy(), other.cpu().numpy()


class Fed:
    """A backend whose tokens are the reference's, and which compares its logits
    with those of the reference, by prompt and position.
    """

    def __init__(self, backend, said, exact):
        self.backend, self.config = backend, backend.config
        self.block_count, self.block_size = backend.block_count, 16
        self.room = backend.room
        self.said, self.exact = said, exact
        self.error = np.full(said.shape, np.nan, "float32")
        self.other = np.zeros(said.shape, bool)

    def run(self, batch):
        logits = self.backend.run(batch)
        self.backend.stream.synchronize()
        ours = torch.as_tensor(logits, device="cuda")
        work = [work for work in self.engine.last.work if work.last]
        if not work:
            return logits
        ids = [w.request.id for w in work]
        at = [len(w.request.output) for w in work]
        exact = self.exact[
            torch.tensor(ids, device="cuda"), torch.tensor(at, device="cuda")
        ]
        self.error[ids, at], self.other[ids, at] = compared(ours, exact)
        self.next = self.said[ids, at]
        return logits

    def sample(self, logits, draws):
        return self.next

    def fetch(self, drawn):
        return drawn


def fed(said, exact, **mode):
    """The errors of all positions, and where the first choice is another."""
    backend = GpuBackend(checkpoint, 4096, 16, **mode)
    seen = Fed(backend, said, exact)
    machine = Scheduler(
        NaiveBlocks(4096, 16), 2048, 256, context=checkpoint.config.context
    )
    seen.engine = Engine(seen, machine)
    for i, prompt in enumerate(prompts):
        seen.engine.add(Request(i, prompt, SAY))
    while seen.engine.busy:
        seen.engine.step()
    return seen.error, seen.other


if torch:
    n = len(prompts)
    with torch.no_grad():
        fp32 = TorchLlama(torch, checkpoint, torch.float32, n, LENGTH)
        said = Steps(fp32, graph=False).run(prompts, SAY)[0]
        # All logits of the reference: fp32, 200 x 128 x 49152.
        whole = np.zeros((n, LENGTH), "int64")
        for row, prompt, more in zip(whole, prompts, said.cpu().numpy()):
            row[: len(prompt) + SAY] = [*prompt, *more]
        whole = torch.tensor(whole, device="cuda")
        ends = torch.tensor([len(p) - 1 for p in prompts], device="cuda")
        rows = torch.arange(n, device="cuda")[:, None]
        where = ends[:, None] + torch.arange(SAY, device="cuda")
        at = torch.arange(LENGTH, device="cuda").expand(whole.shape)

        def logits_of(model):
            return model.head(model.layers(whole, at)[rows, where])

        exact = logits_of(fp32)
        del fp32
        two = torch.stack([row.topk(2, -1).values for row in exact])
        gap = (two[..., 0] - two[..., 1]).cpu().numpy()
        bf16 = TorchLlama(torch, checkpoint, torch.bfloat16, n, LENGTH)
        theirs = [compared(a, b) for a, b in zip(logits_of(bf16), exact)]
        del bf16
    torch.cuda.empty_cache()
    said = said.cpu().numpy().astype("int32")
    # Errors and other first choices, [prompts, positions] each.
    seen = {"PyTorch, bf16": tuple(np.stack(part) for part in zip(*theirs))}
    for name, invariant in (("fast", False), ("batch-invariant", True)):
        seen[name] = fed(said, exact, batch_invariant=invariant)
    bound = 2 * float(seen["PyTorch, bf16"][0].max())
    clear = gap > 2 * bound
    rows = {}
    for name, (error, other) in seen.items():
        rows[name] = {
            "largest error": float(error.max()),  # NaN if one is missing
            "positions": error.size,
            "other first choice": int(other.sum()),
        }
        if name != "PyTorch, bf16":
            rows[name]["too close to count"] = int((~clear).sum())
            rows[name]["wrong"] = int((other & clear).sum())
    ct.table("200 prompts beside fp32", rows, corner="computed by")
    ct.facts(
        "the rule",
        {
            "error bound": bound,
            "positions too close to count": (
                100 * float(1 - clear.mean()),
                "%",
            ),
            "gap of the first two logits, median": float(np.median(gap)),
        },
    )
    ct.check(
        np.array([row.get("wrong", 0) for row in rows.values()]),
        np.zeros(len(rows), int),
        name="wrong first choices",
    )
    every = all(np.isfinite(error).all() for error, _ in seen.values())
    ct.check(np.array(every), True, name="every position was compared")


# %% [markdown]
# That rule leaves most positions out. What tells more: how large was the gap
# between the reference's first two logits where the first choice was still
# another one, and how many positions have a smaller gap? Then the same with a
# bound for each position, twice PyTorch's largest error there.


# %% gaps
def undecided(gap, other):
    """The largest gap at which the first choice is another one, and the percent
    of positions whose gap is not larger: there this result shows no order.
    """
    largest = float(gap[other].max(initial=0))
    return largest, 100 * float((gap <= largest).mean())


if torch:
    bounds = 2 * seen["PyTorch, bf16"][0]  # of each position
    clear = gap > 2 * bounds
    plain, own = {}, {}
    for name, (_, other) in seen.items():
        largest, share = undecided(gap, other)
        plain[name] = {
            "largest gap": largest,
            "positions with no larger gap": share,
        }
        largest, share = undecided(gap / bounds, other)
        own[name] = {
            "too close to count": int((~clear).sum()),
            "wrong": int((other & clear).sum()),
            "largest gap, in bounds": largest,
            "positions with no larger gap": share,
        }
    units = {"positions with no larger gap": "%"}
    ct.table(
        "where the first choice is another one",
        plain,
        corner="computed by",
        units=units,
    )
    ct.table(
        "a bound for each position", own, corner="computed by", units=units
    )
    ct.facts(
        "bounds of the positions",
        {
            "median": float(np.median(bounds)),
            "largest": float(bounds.max()),
            "positions too close to count": (
                100 * float(1 - clear.mean()),
                "%",
            ),
        },
    )
