"""Which recordings differ between two snapshots."""

from __future__ import annotations

from dataclasses import dataclass, field

from cudatut.recording import DamagedRecordingError, MissingRecordingError, Recording
from cudatut.site.moved.snapshot import Snapshot


@dataclass
class Compared:
    """The recordings that differ between two snapshots in what they measured; `names` limits to these examples."""

    before: Snapshot
    after: Snapshot
    names: frozenset[str] = frozenset()
    pairs: dict[str, tuple[Recording, Recording]] = field(default_factory=dict)
    new: list[str] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)  # and why

    def __post_init__(self) -> None:
        for name in sorted(self.before.recordings | self.after.recordings):
            wanted = not self.names or self.names & {name, name.partition("/")[2]}
            if wanted and self.before.recordings.get(name) != self.after.recordings.get(name):
                self._compare(name)

    def _compare(self, name: str) -> None:
        """Exercises have notebooks that are no recordings; they are damaged ones in both."""
        sides: list[Recording | DamagedRecordingError | None] = []
        for side in (self.before, self.after):
            try:
                sides.append(side.recording(name))
            except MissingRecordingError:
                sides.append(None)
            except DamagedRecordingError as error:
                sides.append(error)
        match sides:
            case [Recording() as old, Recording() as new]:
                if old.measured() != new.measured():
                    self.pairs[name] = old, new
            case [None, Recording()]:
                self.new.append(name)
            case [Recording(), None]:
                self.gone.append(name)
            case [Recording(), DamagedRecordingError() as why] | [DamagedRecordingError() as why, Recording()]:  # fmt: skip
                self.unread.append(str(why))

    @property
    def changed(self) -> set[str]:
        return {*self.pairs, *self.new, *self.gone}
