"""The build of the package, with the start file that sr3 needs, which pyproject.toml cannot declare."""

from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

# Python executes the lines of `.pth` files at its start; see signalbox/sr3/__init__.py.
START_FILE = "signalbox-sr3.pth"
START_LINE = "import signalbox.sr3\n"


class BuildWithStartFile(build_py):
    """Adds the start file next to the package, so that pip installs and removes it with the package."""

    def run(self) -> None:
        """Build the package, then the file, except for an editable installation."""
        super().run()
        if not self.editable_mode:
            Path(self.build_lib, START_FILE).write_text(START_LINE, encoding="ascii")

    def get_outputs(self, include_bytecode: bool = True) -> list[str]:  # noqa: FBT001, FBT002 - setuptools' own
        """Return all files that were built."""
        return [*super().get_outputs(include_bytecode), str(Path(self.build_lib, START_FILE))]


setup(cmdclass={"build_py": BuildWithStartFile})
