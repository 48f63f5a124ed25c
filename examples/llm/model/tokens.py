"""Text to tokens and back, by the vocabulary inside the GGUF file.

    tokenizer = load(checkpoint)
    ids = tokenizer.chat([("user", "What is the capital of France?")])
    stream = tokenizer.stream()
    print(stream.push(token), end="")       # whole characters only

Two kinds are known: byte-level BPE ('gpt2' in the file), of SmolLM2; and one
token per character ('characters'), of this book's own small model.
"""

import codecs
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cached_property

import cudatut as ct
from cudatut.book.llm.model.checkpoint import Checkpoint, CheckpointError
from cudatut.paths import pip_install

CONTROL = 3  # the file's type of tokens that are marks, not text
START_OF_TURN, END_OF_TURN = "<|im_start|>", "<|im_end|>"
END_OF_TEXT = "<|endoftext|>"


class TextError(ct.CudatutError):
    """A text that this vocabulary cannot express, or a chat with a model that
    has learned none.
    """


# --8<-- [start:stream]
class Stream:
    """Text from tokens as they come. A character may take several tokens: its
    bytes wait until it is whole.
    """

    def __init__(self, pieces: Sequence[bytes]):
        self._pieces = pieces
        # Bytes that can never become a character are shown as U+FFFD.
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def push(self, token: int) -> str:
        """The text that this token completes; '' while a character lacks bytes."""
        return self._decoder.decode(self._pieces[token])

    def end(self) -> str:
        """What is left when no token follows: '' or U+FFFD."""
        return self._decoder.decode(b"", final=True)


# --8<-- [end:stream]


class Vocabulary:
    """What both kinds of tokenizer share: tokens by number, the marks among
    them, and the way back to text.

    names: each token as the file has it. special: numbers of the marks by name;
    `encode` never gives one, so that a user who types '<|im_end|>' cannot end
    the turn. stop: the marks at which an answer ends.
    """

    def __init__(self, checkpoint: Checkpoint):
        path, names = (
            checkpoint.path,
            checkpoint.metadata("tokenizer.ggml.tokens"),
        )
        types = checkpoint.metadata("tokenizer.ggml.token_type")
        for key, values, kind in (
            ("tokens", names, str),
            ("token_type", types, int),
        ):
            if not (
                isinstance(values, list)
                and len(values) == len(names) > 0
                and isinstance(values[0], kind)
            ):
                raise CheckpointError(
                    f"{path}: tokenizer.ggml.{key} must be a list of {kind.__name__}, one for each token"
                )
        if len(set(names)) < len(names):
            ((twice, times),) = Counter(names).most_common(1)
            raise CheckpointError(
                f"{path}: tokenizer.ggml.tokens has {twice!a:.60} {times} times; each token is allowed once"
            )
        self.names: list[str] = names
        self.special = {
            name: i
            for i, (name, kind) in enumerate(zip(self.names, types))
            if kind == CONTROL
        }
        ends = {checkpoint.metadata("tokenizer.ggml.eos_token_id")}
        ends |= {self.special.get(END_OF_TURN), self.special.get(END_OF_TEXT)}
        self.stop = frozenset(end for end in ends if end is not None)
        if not self.stop:
            raise CheckpointError(
                f"{checkpoint.path} lacks the key tokenizer.ggml.eos_token_id: no token would end an answer"
            )
        self.bos: int | None = checkpoint.metadata(
            "tokenizer.ggml.bos_token_id"
        )

    def piece(self, name: str) -> bytes:
        """The bytes of a token that is no mark."""
        return name.encode()

    @cached_property
    def pieces(self) -> list[bytes]:
        """The bytes of each token; none for marks."""
        return [
            b"" if name in self.special else self.piece(name)
            for name in self.names
        ]

    @property
    def chats(self) -> bool:
        """Whether the model has learned to chat: it knows where turns begin."""
        return START_OF_TURN in self.special

    def alone(self, text: str) -> list[int]:
        """Tokens of a text that the model is to continue. Raises TextError."""
        return self.encode(text)

    def stream(self) -> Stream:
        """A new stream: one for each answer."""
        return Stream(self.pieces)

    def decode(self, tokens: Iterable[int]) -> str:
        """The text of tokens, without marks."""
        stream = self.stream()
        return "".join([stream.push(token) for token in tokens]) + stream.end()


# --8<-- [start:bpe]
def byte_names() -> dict[str, int]:
    """BPE files write each byte as a printable character: itself where it is
    one, else from U+0100 on in turn.
    """
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    names = {chr(byte): byte for byte in plain}
    others = [byte for byte in range(256) if byte not in plain]
    return names | {chr(256 + i): byte for i, byte in enumerate(others)}


class Bpe(Vocabulary):
    """Byte-level BPE: text is cut into words and digits; in each, pairs of
    tokens are merged in the file's order.
    """

    def __init__(self, checkpoint: Checkpoint):
        kind = checkpoint.metadata("tokenizer.ggml.pre")
        if kind != "smollm":
            raise CheckpointError(
                f"{checkpoint.path} cuts text the way of {kind!a:.60}; this part knows 'smollm'"
            )
        super().__init__(checkpoint)
        try:
            from tokenizers import Tokenizer, models, pre_tokenizers
        except ImportError as error:
            raise ct.ToolMissing(
                f"tokenizers is not installed: {pip_install('llm')}"
            ) from error
        self._bytes = byte_names()
        numbers = {name: i for i, name in enumerate(self.names)}
        for name, i in numbers.items():
            if name not in self.special and not self._bytes.keys() >= set(name):
                raise CheckpointError(
                    f"{checkpoint.path}: token {i} of tokenizer.ggml.tokens is {name!a:.60}, which stands for no bytes"
                )
        merges = checkpoint.metadata("tokenizer.ggml.merges")
        if not isinstance(merges, list):
            raise CheckpointError(
                f"{checkpoint.path} lacks the list tokenizer.ggml.merges"
            )
        pairs = [tuple(str(merge).split(" ")) for merge in merges]
        for pair in pairs:
            if len(pair) != 2 or not numbers.keys() >= {*pair, "".join(pair)}:
                raise CheckpointError(
                    f"{checkpoint.path}: tokenizer.ggml.merges has {' '.join(pair)!a:.60}; two tokens that make a third are allowed"
                )
        self._bpe = Tokenizer(models.BPE(numbers, pairs))
        self._bpe.pre_tokenizer = pre_tokenizers.Sequence(
            [
                pre_tokenizers.Digits(individual_digits=True),
                pre_tokenizers.ByteLevel(add_prefix_space=False),
            ]
        )

    def piece(self, name: str) -> bytes:
        return bytes(self._bytes[character] for character in name)

    def encode(self, text: str) -> list[int]:
        """Tokens of a text; marks in it are text like any other."""
        return self._bpe.encode(text, add_special_tokens=False).ids

    # --8<-- [start:chat]
    def chat(
        self,
        messages: Sequence[tuple[str, str]],
        system: str = "You are a helpful AI assistant named SmolLM, trained by Hugging Face",
    ) -> list[int]:
        """Tokens of a conversation, (role, text) each, up to where the
        assistant answers: the template ChatML.

        system: what stands in front of a conversation that begins with another
        role. Raises TextError for a model without these marks.
        """
        if not self.chats:
            raise TextError("this model has not learned to chat")
        if not messages or messages[0][0] != "system":
            messages = [("system", system), *messages]
        start, end = self.special[START_OF_TURN], self.special[END_OF_TURN]
        newline, ids = self.encode("\n"), []
        for role, text in messages:
            ids += [start, *self.encode(f"{role}\n{text}"), end, *newline]
        return [*ids, start, *self.encode("assistant\n")]

    # --8<-- [end:chat]


# --8<-- [end:bpe]


class Characters(Vocabulary):
    """A token for each character."""

    def __init__(self, checkpoint: Checkpoint):
        super().__init__(checkpoint)
        if self.bos is None:
            raise CheckpointError(
                f"{checkpoint.path} lacks the key tokenizer.ggml.bos_token_id"
            )
        self._numbers = {
            name: i
            for i, name in enumerate(self.names)
            if name not in self.special
        }

    def encode(self, text: str) -> list[int]:
        """Tokens of a text. Raises TextError for a character that the model has
        never seen.
        """
        unknown = sorted({c for c in text if c not in self._numbers})
        if unknown:
            raise TextError(
                f"this model has never seen {' '.join(unknown)}: write it another way"
            )
        return [self._numbers[character] for character in text]

    def alone(self, text: str) -> list[int]:
        return [self.bos, *self.encode(text)]

    def chat(self, messages: Sequence[tuple[str, str]]) -> list[int]:
        """Raises TextError: this model only continues a text."""
        raise TextError("this model continues a text; it does not chat")


def load(checkpoint: Checkpoint) -> Bpe | Characters:
    """The tokenizer of a model. Raises CheckpointError for a kind that is
    neither of the two, ToolMissing.
    """
    kinds = {"gpt2": Bpe, "characters": Characters}
    kind = checkpoint.metadata("tokenizer.ggml.model")
    if not isinstance(kind, str) or kind not in kinds:
        raise CheckpointError(
            f"{checkpoint.path} has a tokenizer of the kind {kind!a:.60}; this part knows {' and '.join(kinds)}"
        )
    return kinds[kind](checkpoint)
