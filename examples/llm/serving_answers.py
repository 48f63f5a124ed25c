# ---
# jupyter:
#   cudatut:
#     title: {en: "The engine beside the reference", zh: "引擎与参考实现"}
#     requires: sm_80
#     extra: llm
#     timeout_s: 300
# ---

# %% [markdown]
# 200 prompts, 128 tokens each. The reference computes in fp32; its own tokens
# are fed at every step, to PyTorch in bf16 and to our engine.

# %% setup
import numpy as np

import cudatut as ct
import tokens
from blocks import NaiveBlocks
from checkpoint import Checkpoint
from engine import Engine
from fetch import fetch
from gpu_backend import GpuBackend
from reference import Reference
from request import Request
from scheduler import Scheduler
from torch_llama import Steps, TorchLlama, pytorch

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
class Fed:
    """A backend whose tokens are the reference's, and which compares its logits
    with those of the reference.
    """

    def __init__(self, backend, said, exact, bound):
        self.backend, self.config = backend, backend.config
        self.block_count, self.block_size = backend.block_count, 16
        self.said, self.exact, self.bound = said, exact, bound
        self.largest, self.all, self.left_out, self.other, self.wrong = [0] * 5

    def run(self, batch):
        logits = self.backend.run(batch)
        self.backend.stream.synchronize()
        ours = torch.as_tensor(logits, device="cuda")
        work = [work for work in self.engine.last.work if work.last]
        if not work:
            return logits
        ids = torch.tensor([w.request.id for w in work], device="cuda")
        at = [len(w.request.output) for w in work]
        exact = self.exact[ids, torch.tensor(at, device="cuda")]
        error = (ours - exact).abs().max().item()
        self.largest = max(self.largest, error)
        two = exact.topk(2, -1).values
        clear = two[:, 0] - two[:, 1] > 2 * self.bound
        other = ours.argmax(-1) != exact.argmax(-1)
        self.all += len(work)
        self.left_out += int((~clear).sum())
        self.other += int(other.sum())
        self.wrong += int((other & clear).sum())
        self.next = self.said[[w.request.id for w in work], at]
        return logits

    def sample(self, logits, draws):
        return self.next

    def fetch(self, drawn):
        return drawn


def fed(said, exact, bound, **mode):
    backend = GpuBackend(checkpoint, 4096, 16, **mode)
    seen = Fed(backend, said, exact, bound)
    machine = Scheduler(
        NaiveBlocks(4096, 16), 2048, 256, context=checkpoint.config.context
    )
    seen.engine = Engine(seen, machine)
    for i, prompt in enumerate(prompts):
        seen.engine.add(Request(i, prompt, SAY))
    while seen.engine.busy:
        seen.engine.step()
    return seen


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
        bf16 = TorchLlama(torch, checkpoint, torch.bfloat16, n, LENGTH)
        theirs = logits_of(bf16)
        largest = max((a - b).abs().max().item() for a, b in zip(theirs, exact))
        other = int((theirs.argmax(-1) != exact.argmax(-1)).sum())
        del bf16, theirs
    torch.cuda.empty_cache()
    bound = 2 * largest
    said = said.cpu().numpy().astype("int32")
    rows = {
        "PyTorch, bf16": {
            "largest error": largest,
            "positions": n * SAY,
            "other first choice": other,
        }
    }
    for name, invariant in (("fast", False), ("batch-invariant", True)):
        seen = fed(said, exact, bound, batch_invariant=invariant)
        rows[name] = {
            "largest error": seen.largest,
            "positions": seen.all,
            "other first choice": seen.other,
            "too close to count": seen.left_out,
            "wrong": seen.wrong,
        }
    ct.table("200 prompts beside fp32", rows, corner="computed by")
    ct.facts(
        "the rule",
        {
            "error bound": bound,
            "positions too close to count": (
                100 * seen.left_out / seen.all,
                "%",
            ),
        },
    )
    ct.check(
        np.array([row.get("wrong", 0) for row in rows.values()]),
        np.zeros(len(rows), int),
        name="wrong first choices",
    )
