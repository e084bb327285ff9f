"""The walk of a reader who follows one message through the files of some folders, recorded from the calls."""

import sys
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType

from tests.docs.markdown import ROOT

Step = tuple[str, str]
"""A function: its file and its name."""


@dataclass
class Walk:
    """The files in the order in which calls enter them.

    A file is read whole when it is entered. The walk turns back where a call enters a file again after other files, in
    a function that has not run yet, and leads on from there into a file that has not been read.
    """

    folders: tuple[str, ...]
    files: list[str] = field(default_factory=list)
    _steps: set[Step] = field(default_factory=set)
    _entered_again: list[Step] = field(default_factory=list)
    _calls: dict[Step, list[Step]] = field(default_factory=lambda: defaultdict(list))
    _opening: set[Step] = field(default_factory=set)
    _read_until: dict[str, int] = field(default_factory=dict)

    def record(self, frame: FrameType, event: str, _argument: object) -> None:
        """Record a call, as a function for `sys.setprofile`."""
        step = self._step(frame)
        if event != "call" or step is None or step in self._steps:
            return
        self._steps.add(step)
        caller = self._caller(frame)
        if caller is not None:
            self._calls[caller].append(step)
        if step[0] not in self.files:
            self.files.append(step[0])
            self._opening.add(step)
        elif (caller is None or caller[0] != step[0]) and self._read_until[step[0]] < len(self.files):
            self._entered_again.append(step)
        self._read_until[step[0]] = len(self.files)

    @property
    def turns(self) -> list[str]:
        """Return the functions at which the walk turned back."""
        return [" ".join(step) for step in self._entered_again if self._leads_on(step)]

    def _leads_on(self, step: Step) -> bool:
        own = [called for called in self._calls[step] if called[0] == step[0]]
        return any(called in self._opening for called in self._calls[step]) or any(map(self._leads_on, own))

    def _step(self, frame: FrameType) -> Step | None:
        code = frame.f_code
        if code.co_name.startswith(("<", "__")) or not code.co_filename.startswith(f"{ROOT}/"):
            return None
        file = code.co_filename.removeprefix(f"{ROOT}/")
        return (file, code.co_qualname) if file.startswith(self.folders) else None

    def _caller(self, frame: FrameType) -> Step | None:
        """Return the nearest function of the folders that made a call, also through a function in another folder."""
        outer = frame.f_back
        while outer is not None:
            if (step := self._step(outer)) is not None:
                return step
            outer = outer.f_back
        return None


@contextmanager
def walk(*folders: str) -> Iterator[Walk]:
    """Record the calls of a block into the files of folders."""
    walked = Walk(folders)
    sys.setprofile(walked.record)
    try:
        yield walked
    finally:
        sys.setprofile(None)
