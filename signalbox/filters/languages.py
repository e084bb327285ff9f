"""The filter compiler: regular expressions and jq programs, each within its limits."""

from dataclasses import dataclass, field

from signalbox.filters.captures import SandboxedCapture, compile_capture
from signalbox.filters.engines import Engines
from signalbox.filters.patterns import compile_pattern
from signalbox.splitting.model.filters import CompiledPattern, CompiledProgram, FilterUse


@dataclass(frozen=True, slots=True)
class Languages:
    """The `Compiler` that functions and commands use."""

    engines: Engines = field(default_factory=Engines)

    def begin(self, use: FilterUse) -> FilterUse:
        """Charge further compilations and evaluations to `use`; return the one charged before."""
        before, self.engines.use = self.engines.use, use
        return before

    def pattern(self, text: str, *, case_sensitive: bool) -> CompiledPattern:
        """Return a compiled regular expression. Raises `InvalidExpression`."""
        return compile_pattern(text, case_sensitive=case_sensitive, engines=self.engines)

    def capture(self, text: str) -> SandboxedCapture:
        """Return a regular expression that finds a name within a text. Raises `InvalidExpression`."""
        return compile_capture(text, self.engines)

    def program(self, text: str) -> CompiledProgram:
        """Return a compiled jq program. Raises `InvalidExpression`."""
        from signalbox.filters.programs import compile_program  # noqa: PLC0415 - many stages have no such filter

        return compile_program(text, self.engines)
