"""A planted fault."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Mutant:
    """A fault: a text of a module that occurs once, and what replaces it. The simulation of `capability` finds it.

    `allowed` is a sentence of the pages that allows everything the fault does: then it is not to be found.
    """

    name: str
    capability: str
    module: str
    old: str
    new: str
    allowed: str = ""
