"""A planted fault."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Mutant:
    """A fault: a text of a module that occurs once, and what replaces it. The simulation of `capability` finds it."""

    name: str
    capability: str
    module: str
    old: str
    new: str
