"""One thing to mend in a file of the book: what each rule of a chapter reports."""

from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class Finding:
    """`file` relative to the checkout, `line` from 1 (0: the file as a whole), `message` one sentence with the cure."""

    file: str
    line: int
    message: str

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.line else self.file
        return f"{place}: {self.message}"
