# ---
# jupyter:
#   cudatut:
#     title: {en: "Block managers: claims", zh: "块管理器：有关说法"}
#     requires: sm_80
#     extra: llm
#     alone: false
# ---

# %% [markdown]
# What a tutorial says of prefix caching, tried with the model of the book, which
# continues poems, and with our block manager that finds blocks by hashes.

# %% setup
import cudatut as ct
from cudatut.book.llm.engine.prefix import PrefixBlocks
from cudatut.book.llm.model import tokens
from cudatut.book.llm.model.checkpoint import Checkpoint
from cudatut.book.llm.model.reference import Reference

tang = Checkpoint.open(ct.paths.examples_dir() / "llm/model/tang.gguf")
model, characters = Reference(tang), tokens.load(tang)
first, second = "春眠不觉晓，", "处处闻啼鸟。"
other, another = "白日依山尽，", "黄河入海流。"


def keys_of(*lines):
    """Keys of the last line in the last layer."""
    model.reset()
    for line in lines:
        model.forward(found := characters.encode(line))
    return model.keys[-1][-len(found) :]


# %% claim-hash
def change(one, new):
    """Largest difference, in percent of the largest key, to a hundredth."""
    return round(100 * float(abs(one - new).max() / abs(one).max()), 2)


usual = keys_of(first, second)
ct.claim(
    id="block-hash-of-its-tokens",
    source="CUDATutorial 16/05",
    place={
        "en": "section 2.2, second paragraph; section 3.1, on `content_hash`",
        "zh": "2.2 节第二段；3.1 节，讲 `content_hash`",
    },
    form="said",
    statement={
        "en": "A hash is made for the tokens of each block; if the tokens of "
        "two requests are equal, so are the hashes, and cached keys and values "
        "are used again. By how much the keys of a block differ whose hashes "
        "would be equal.",
        "zh": "对每个块中的词元序列生成哈希值；两个请求的词元序列相同，哈希值就相同，缓存的键和值可以复用。"
        "这里是哈希值会相同的两块，键相差多少。",
    },
    expected=0.0,
    sides=(
        (
            {
                "en": "the block's own tokens are equal, another line stands "
                "before them",
                "zh": "块内词元相同，前面换了一句",
            },
            change(usual, keys_of(other, second)),
        ),
        (
            {
                "en": "all tokens from the beginning are equal",
                "zh": "从开头起的词元全都相同",
            },
            change(usual, keys_of(first, second)),
        ),
    ),
    depends={
        "en": "on what is hashed: the tokens of the block alone, as the "
        "paragraph begins, or all from the beginning, as it goes on (and as "
        "vLLM does)",
        "zh": "对什么算哈希：只算块内的词元（该段开头），还是从开头起的全部词元（该段后文，vLLM 也是这样）",
    },
    found="computed",
    unit="%",
    rule="equal",
    control=(
        {
            "en": "another line in the block itself, the same before it, where "
            "keys have to differ",
            "zh": "前面相同，块内换了一句，键应当不同",
        },
        change(usual, keys_of(first, another)),
        (5.0, 1000.0),
    ),
)

# %% claim-similar
LENGTH, SIZE = 129, 16  # a prompt of eight blocks, and the token that follows
prompt = list(range(1, LENGTH + 1))


def found(changed):
    """Percent of the blocks of a prompt that are found after the same prompt
    with these tokens changed.
    """
    blocks = PrefixBlocks(100, SIZE)
    blocks.begin(0, prompt)
    blocks.reserve(0, 0, LENGTH)
    blocks.commit(0, prompt, LENGTH)
    similar = [0 if i in changed else t for i, t in enumerate(prompt)]
    return 100 * len(blocks.lookup(similar)) / (LENGTH // SIZE)


ct.claim(
    id="similar-prompts-share",
    source="CUDATutorial 16/05",
    place={
        "en": "section 4.2, on similar contexts",
        "zh": "4.2 节，讲相似上下文",
    },
    form="said",
    statement={
        "en": "Where system prompts differ a little and contexts are alike, "
        "content hashes find most of the blocks to be the same, and they are "
        "shared. Blocks found of a prompt of eight, one token of which is "
        "another, in our manager that hashes as vLLM does.",
        "zh": "系统 prompt 略有不同而上下文相似时，内容哈希能识别出大部分数据块相同，并共享它们。这里是一条占八块的提示改动一个词元后能找到的块，"
        "用的是本书与 vLLM 一样算哈希的管理器。",
    },
    expected=50.0,
    sides=(
        (
            {"en": "the first token is another", "zh": "改动第一个词元"},
            found({0}),
        ),
        (
            {
                "en": "a token of the last block is another",
                "zh": "改动最后一块里的一个词元",
            },
            found({LENGTH - 3}),
        ),
    ),
    depends={
        "en": "on where they differ: what stands behind the first difference is "
        "not shared",
        "zh": "差别在哪里：第一处不同之后的内容都不能共享",
    },
    found="simulated",
    unit="%",
    rule="above",
    control=(
        {
            "en": "the same prompt, all of which is found",
            "zh": "同一条提示，应当全部找到",
        },
        found(set()),
        100.0,
    ),
)
