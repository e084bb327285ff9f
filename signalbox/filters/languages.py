"""The languages of filters: regular expressions and jq, each within its bounds."""

from dataclasses import dataclass, field

from signalbox.filters.patterns import compile_pattern
from signalbox.filters.programs import JqProgram, ProgramRunner
from signalbox.splitting.forwarding.filters import Pattern


@dataclass(frozen=True, slots=True)
class Languages:
    """The `Compiler` of filters, as every function and command uses it."""

    programs: ProgramRunner = field(default_factory=ProgramRunner)

    def pattern(self, text: str, *, case_sensitive: bool) -> Pattern:
        """Return a compiled regular expression. Raises `InvalidExpression`."""
        return compile_pattern(text, case_sensitive=case_sensitive)

    def program(self, text: str) -> JqProgram:
        """Return a compiled jq program. Raises `InvalidExpression`."""
        return self.programs.compile(text)
