"""The filter compiler: regular expressions and jq programs, each within its limits."""

from dataclasses import dataclass, field

from signalbox.filters.patterns import compile_pattern
from signalbox.filters.programs import JqProgram, ProgramRunner
from signalbox.splitting.forwarding.filters import Pattern


@dataclass(frozen=True, slots=True)
class Languages:
    """The `Compiler` that functions and commands use."""

    programs: ProgramRunner = field(default_factory=ProgramRunner)

    def pattern(self, text: str, *, case_sensitive: bool) -> Pattern:
        """Return a compiled regular expression. Raises `InvalidExpression`."""
        return compile_pattern(text, case_sensitive=case_sensitive)

    def program(self, text: str) -> JqProgram:
        """Return a compiled jq program. Raises `InvalidExpression`."""
        return self.programs.compile(text)
