"""Builds the package; all that pyproject.toml cannot say is that a file goes beside it: the one that sr3 needs."""

from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

# Python runs the lines of such files when it starts; see signalbox/sr3/__init__.py.
START_FILE = "signalbox-sr3.pth"
START_LINE = "import signalbox.sr3\n"


class BuildWithStartFile(build_py):
    """Puts the file beside the package, where it is installed with it and removed with it."""

    def run(self) -> None:
        """Build the package, then the file; an editable installation is of a checkout, where nobody runs sr3."""
        super().run()
        if not self.editable_mode:
            Path(self.build_lib, START_FILE).write_text(START_LINE, encoding="ascii")

    def get_outputs(self, include_bytecode: bool = True) -> list[str]:  # noqa: FBT001, FBT002 - setuptools' own
        """Return all files that were built."""
        return [*super().get_outputs(include_bytecode), str(Path(self.build_lib, START_FILE))]


setup(cmdclass={"build_py": BuildWithStartFile})
