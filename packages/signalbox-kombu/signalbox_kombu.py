"""Registers the scheme `signalbox` of broker URLs when kombu loads its own transports.

kombu has no entry point for transports. Python imports this module at its start, by the file `signalbox-kombu.pth` of
the distribution, in every program of the environment, so that it imports nothing before kombu is loaded.
"""

import sys
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

TRANSPORTS = "kombu.transport"
SCHEME, TRANSPORT = "signalbox", "signalbox.kombu.transport:Transport"


class _AfterTransports:
    """An import hook that adds the scheme to kombu's own."""

    def find_spec(self, name: str, path: object = None, _target: object = None) -> ModuleSpec | None:
        """Return the spec of kombu's transports, extended by ours; None for any other module."""
        if name != TRANSPORTS:
            return None
        spec = PathFinder.find_spec(name, path)  # type: ignore[arg-type]  # passed on as Python gave it
        if spec is not None and spec.loader is not None:
            load = spec.loader.exec_module

            def load_and_add(module: ModuleType) -> None:
                load(module)
                module.TRANSPORT_ALIASES[SCHEME] = TRANSPORT

            spec.loader.exec_module = load_and_add  # type: ignore[method-assign]  # of this one loader
        return spec


sys.meta_path.insert(0, _AfterTransports())
