# ---
# jupyter:
#   cudatut:
#     title: {en: "The engine: solutions", zh: "推理引擎：参考答案"}
#     requires: sm_80
#     extra: llm
#     sizes: {times: [4000, 400]}
# ---

# %% [markdown]
# Guesses from the text itself, and a draw that depends on a counter alone.

# %% given-1
import numpy as np


# %% solution-1
def guess(tokens, count):
    last = tokens[-2:]
    for end in range(len(tokens) - 1, 1, -1):  # the latest place first
        if tokens[end - 2 : end] == last:
            return tokens[end : end + count]
    return []


# %% check-1
import cudatut as ct
from cudatut.book.llm.engine.sampler import accept


def model(tokens):  # it walks in a circle of 11, and now and then jumps
    at = len(tokens)
    return (tokens[-1] + 1 + (at % 29 == 0)) % 11


def generate(prompt, most, count):
    """With at most `count` guesses in each step; the steps that it took."""
    tokens, steps = list(prompt), 0
    while len(tokens) < len(prompt) + most:
        left = len(prompt) + most - len(tokens)
        drafts = list(guess(tokens, min(count, left - 1))) if count else []
        if len(drafts) > max(0, min(count, left - 1)):
            raise ct.CheckError(f"guess gave {len(drafts)} tokens")
        known = [tokens + drafts[:i] for i in range(len(drafts) + 1)]
        tokens += accept(drafts, [model(some) for some in known])
        steps += 1
    return tokens, steps


plain, slow = generate([3, 4], 200, 0)
guessed, fast = generate([3, 4], 200, 7)
ct.check(np.array(guessed), np.array(plain), name="output with guesses")
if fast > slow / 3:
    raise ct.CheckError(f"guess saves too little: {fast} steps of {slow}")
text = [1, 2, 3, 1, 2, 4, 9, 1, 2]
ct.check(np.array(guess(text, 2)), np.array([4, 9]), name="guess")
ct.check(np.array(len(guess([1, 2, 3], 4))), 0, name="guess of a new text")
ct.check(np.array(len(guess([1], 4))), 0, name="guess of one token")
ct.facts("steps of 200 tokens", {"without guesses": slow, "with guesses": fast})

# %% given-2
import numpy as np
from cudatut.book.llm.engine.sampler import philox


# %% solution-2
def draw(logits, temperature, seed, request, position):
    if temperature == 0:
        return int(np.argmax(logits))
    n = len(logits)
    counter = np.zeros((-(-n // 4), 4), "uint32")
    counter[:, 0] = np.arange(len(counter))
    counter[:, 1], counter[:, 2] = position, request
    words = philox(counter, seed).ravel()[:n].astype("float32")
    v = words * np.float32(2.0**-32) + np.float32(2.0**-33)
    v = np.minimum(v, np.float32(1 - 2.0**-24))
    noise = -np.log(-np.log1p(-v))
    return int(np.argmax(logits / np.float32(temperature) + noise))


# %% check-2
import cudatut as ct
from cudatut.book.llm.engine.sampler import Sampling, sample

rng = ct.rng(0)
ours, reference = [], []
for trial in range(40):
    n = int(rng.integers(1, 3000))
    logits = (3 * rng.standard_normal(n)).astype("float32")
    temperature = float(rng.choice([0.0, 0.7, 1.3]))
    where = int(rng.integers(1 << 30)), int(rng.integers(1 << 20))
    ours.append(draw(logits, temperature, trial, *where))
    reference.append(sample(logits, Sampling(temperature, seed=trial), *where))
ct.check(np.array(ours), np.array(reference), name="draws like the reference")

# How often each token is drawn, in standard deviations from its probability.
times = 4000
logits = np.array([2.0, 1.0, 0.0, 1.5, -1.0], "float32")
drawn = [draw(logits, 1.0, 5, 0, position) for position in range(times)]
expected = times * np.exp(logits) / np.exp(logits).sum()
found = np.bincount(drawn, minlength=5)
deviations = np.abs(found - expected) / np.sqrt(expected)
ct.check(deviations < 5, np.ones(5, bool), name="draws as often as they should")
