"""Train this book's own small model: a Llama of 1.7 million weights that
continues Tang poems, character by character.

    npm pack chinese-poetry@2.0.1
    python examples/llm/model/train_tang.py chinese-poetry-2.0.1.tgz --steps 3900

PyTorch is a tool for this alone: nothing else of the part needs it. On a GPU in
bf16, elsewhere in fp32. The text is 57,607 poems of the Complete Tang Poems in
the npm package chinese-poetry 2.0.1 (MIT license, (c) 2016 JackeyGao), whose
hash is checked; with the library opencc they are written in simplified
characters.
"""

import argparse
import hashlib
import json
import math
import tarfile
import time
from collections import Counter
from pathlib import Path

import numpy as np

from cudatut.book.llm.model.checkpoint import Checkpoint, Config, file_hash
from cudatut.book.llm.model.tiny import SPECIAL, save

SHA256 = "25b549e46919c3a0569db6b68ddc96956b04a484ea4518ad2bbd4f137e307e86"
POEMS = "package/dist/quantangshi/poet.tang."
UNKNOWN, BEGIN, END = range(3)  # numbers of SPECIAL
RMS_EPS = 1e-5
# Of 1,000 poems one is kept away from training, to be asked about.
KEPT_AWAY = 1000


# --8<-- [start:text]
def read_poems(archive: Path, simplified: bool = True) -> list[str]:
    """The poems, a line of text each. Raises SystemExit for another file than
    the one that is meant.
    """
    if (found := file_hash(archive)) != SHA256:
        raise SystemExit(
            f"{archive} is not chinese-poetry 2.0.1: its SHA-256 is {found}, not {SHA256}"
        )
    poems = []
    with tarfile.open(archive) as files:
        names = [n for n in files.getnames() if n.startswith(POEMS)]
        for name in sorted(names, key=lambda n: int(n.split(".")[-2])):
            for poem in json.load(files.extractfile(name)):
                poems.append("".join(poem["paragraphs"]))
    if simplified:
        from opencc import OpenCC

        poems = OpenCC("t2s").convert("\n".join(poems)).split("\n")
    return [poem for poem in poems if len(poem) >= 20]


def license_text(archive: Path) -> str:
    """The license of the poems, which goes wherever the model goes."""
    with tarfile.open(archive) as files:
        return files.extractfile("package/LICENSE").read().decode().strip()


def vocabulary(poems: list[str], size: int) -> list[str]:
    """The most frequent characters, in the order of their code points."""
    counts = Counter("".join(poems))
    ranked = sorted(counts, key=lambda c: (-counts[c], c))
    return sorted(ranked[: size - len(SPECIAL)])


def encode(poems: list[str], characters: list[str]) -> np.ndarray:
    """All poems in a row, uint16, each between BEGIN and END; poems with a
    character that is not known are left out.
    """
    numbers = {c: i for i, c in enumerate(characters, len(SPECIAL))}
    tokens: list[int] = []
    for poem in poems:
        if all(c in numbers for c in poem):
            tokens += [BEGIN, *(numbers[c] for c in poem), END]
    return np.array(tokens, "uint16")


# --8<-- [end:text]


# --8<-- [start:model]
def initial_weights(config: Config, torch, device: str) -> dict:
    """Parameters by our names, fp32. What is added to the residual stream
    begins smaller, the deeper the model.
    """
    torch.manual_seed(0)
    weights = {}
    for name, shape in config.shapes().items():
        if len(shape) == 1:
            value = torch.ones(shape)
        else:
            deep = math.sqrt(2 * config.layers)
            scale = deep if name.endswith((".o", ".down")) else 1.0
            value = torch.randn(shape) * 0.02 / scale
        weights[name] = value.to(device).requires_grad_()
    return weights


def logits(w: dict, config: Config, tokens, torch):
    """[batch, t] tokens to [batch, t, vocab] logits: the model of reference.py
    in PyTorch, for whole sequences.
    """
    nn, c = torch.nn.functional, config
    batch, t = tokens.shape
    exponents = torch.arange(0, c.head_dim, 2, device=tokens.device)
    angles = torch.outer(
        torch.arange(t, device=tokens.device),
        c.rope_theta ** (-exponents / c.head_dim),
    )
    cos, sin = angles.cos(), angles.sin()

    def rotate(x):  # adjacent pairs, as in the file
        even, odd = x[..., 0::2], x[..., 1::2]
        turned = even * cos - odd * sin, even * sin + odd * cos
        return torch.stack(turned, -1).flatten(-2).to(x.dtype)

    def norm(x, name):
        scale = torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + RMS_EPS)
        return x * scale.to(x.dtype) * w[name]

    def heads(x, count):
        return x.view(batch, t, count, c.head_dim).transpose(1, 2)

    x = w["embedding"][tokens]
    for i in range(c.layers):
        name = f"layers.{i}."
        h = norm(x, name + "attention_norm")
        q = rotate(heads(h @ w[name + "q"].T, c.heads))
        k = rotate(heads(h @ w[name + "k"].T, c.kv_heads))
        v = heads(h @ w[name + "v"].T, c.kv_heads)
        group = c.heads // c.kv_heads
        k, v = (y.repeat_interleave(group, 1) for y in (k, v))
        out = nn.scaled_dot_product_attention(
            q, k, v.to(q.dtype), is_causal=True
        )
        x = x + out.transpose(1, 2).reshape(batch, t, -1) @ w[name + "o"].T
        h = norm(x, name + "ffn_norm")
        h = nn.silu(h @ w[name + "gate"].T) * (h @ w[name + "up"].T)
        x = x + h @ w[name + "down"].T
    return norm(x, "norm") @ w["embedding"].T


# --8<-- [end:model]


# --8<-- [start:train]
def train(config: Config, text: np.ndarray, options: argparse.Namespace):
    """AdamW with a cosine schedule on pieces that begin where a poem does; the
    weights as NumPy arrays.
    """
    import torch

    device = "cuda" if torch.cuda.is_available() else "cpu"
    w = initial_weights(config, torch, device)
    matrices = [x for x in w.values() if x.ndim == 2]
    norms = [x for x in w.values() if x.ndim == 1]
    adam = torch.optim.AdamW(
        [
            {"params": matrices, "weight_decay": 0.1},
            {"params": norms, "weight_decay": 0.0},
        ],
        betas=(0.9, 0.95),
    )
    length, rng = options.length, np.random.default_rng(0)
    begins = np.flatnonzero(text == BEGIN)
    begins = begins[begins < len(text) - length - 1]
    began, tell = time.perf_counter(), max(1, options.steps // 20)
    for step in range(options.steps):
        warm = min(1.0, (step + 1) / max(1, options.steps // 50))
        cosine = 0.5 * (1 + math.cos(math.pi * step / options.steps))
        for group in adam.param_groups:
            group["lr"] = options.rate * warm * (0.1 + 0.9 * cosine)
        at = rng.choice(begins, options.batch)[:, None]
        piece = text[at + np.arange(length + 1)].astype("int64")
        piece = torch.from_numpy(piece).to(device)
        with torch.autocast(device, torch.bfloat16, enabled=device == "cuda"):
            found = logits(w, config, piece[:, :-1], torch)
        loss = torch.nn.functional.cross_entropy(
            found.float().flatten(0, 1), piece[:, 1:].flatten()
        )
        adam.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(w.values(), 1.0)
        adam.step()
        if step % tell == 0 or step == options.steps - 1:
            seconds = time.perf_counter() - began
            print(f"step {step:6,}: {loss.item():.3f} nats, {seconds:.0f} s")
    return {n: x.detach().float().cpu().numpy() for n, x in w.items()}


# --8<-- [end:train]


def sample_poem(path: Path, opening: str, seed: int = 0) -> str:
    """A poem that begins so, from the written file by the NumPy reference: what
    a reader will get.
    """
    from cudatut.book.llm.model.reference import Reference
    from cudatut.book.llm.engine.sampler import Sampling, sample
    from cudatut.book.llm.model.tokens import load

    checkpoint = Checkpoint.open(path)
    tokenizer, model = load(checkpoint), Reference(checkpoint)
    tokens = [BEGIN, *tokenizer.encode(opening)]
    row, how = model.forward(tokens)[-1], Sampling(0.7, top_k=50, seed=seed)
    while len(tokens) < 100:
        tokens.append(sample(row, how, 0, len(tokens)))
        if tokens[-1] == END:
            break
        row = model.forward(tokens[-1:])[-1]
    return tokenizer.decode(tokens)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("archive", type=Path, help="what `npm pack chinese-poetry@2.0.1` left")
    add("--out", type=Path, default=Path("tang.gguf"))
    add("--steps", type=int, default=3900)
    add("--batch", type=int, default=256, help="pieces of a step")
    add("--length", type=int, default=128, help="characters of a piece")
    add("--rate", type=float, default=3e-3, help="highest learning rate")
    add("--vocab", type=int, default=4096)
    add("--dim", type=int, default=128)
    add("--layers", type=int, default=6)
    add("--ffn", type=int, default=384)
    add("--traditional", action="store_true", help="characters as they are")
    options = parser.parse_args()
    poems = read_poems(options.archive, not options.traditional)
    characters = vocabulary(poems, options.vocab)
    kept = [poem for i, poem in enumerate(poems) if i % KEPT_AWAY]
    text = encode(kept, characters)
    config = Config(
        layers=options.layers,
        dim=options.dim,
        heads=options.dim // 64,
        kv_heads=options.dim // 128,
        head_dim=64,  # the least that decode.cu takes
        ffn=options.ffn,
        vocab=options.vocab,
        context=512,
        rms_eps=RMS_EPS,
    )
    weights = train(config, text, options)
    license = "MIT (text: chinese-poetry 2.0.1, (c) 2016 JackeyGao)"
    save(options.out, config, weights, characters, "tang", license)
    beside = options.out.with_suffix(".LICENSE.txt")
    beside.write_text(license_text(options.archive) + "\n", encoding="utf-8")
    data = options.out.read_bytes()
    digest = hashlib.sha256(data).hexdigest()
    print(f"{options.out}: {len(data):,} bytes, SHA-256 {digest}")
    for seed, opening in enumerate(("", "春", "明月", "")):
        print(sample_poem(options.out, opening, seed))


if __name__ == "__main__":
    main()
