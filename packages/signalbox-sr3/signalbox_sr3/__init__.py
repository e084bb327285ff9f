"""sr3's support for stages as brokers: registers the scheme `amqpsqs` when sr3 loads its own brokers.

Python imports this package at its start, by the file `signalbox-sr3.pth` of the distribution. Configurations of sr3
may import it too (`import signalbox_sr3`), but `sr3 declare` and `sr3 cleanup` do not read such lines. Every Python
program of the environment executes this module, so it imports neither the driver nor boto before sr3 is loaded.
"""

import sys
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

BROKERS = "sarracenia.moth"
DRIVER = "signalbox_sr3.driver"


class _AfterBrokers:
    """An import hook that imports the driver after sr3's own brokers."""

    def find_spec(self, name: str, path: object = None, _target: object = None) -> ModuleSpec | None:
        """Return the spec of sr3's brokers, extended by our driver; None for any other module."""
        if name != BROKERS:
            return None
        spec = PathFinder.find_spec(name, path)  # type: ignore[arg-type]  # passed on as Python gave it
        if spec is not None and spec.loader is not None:
            load = spec.loader.exec_module

            def load_both(module: ModuleType) -> None:
                load(module)
                import_module(DRIVER)

            spec.loader.exec_module = load_both  # type: ignore[method-assign]  # of this one loader
        return spec


def register() -> None:
    """Register the scheme now if sr3 is loaded, else when it is loaded. A second call does nothing."""
    if BROKERS in sys.modules:
        import_module(DRIVER)
    elif not any(isinstance(finder, _AfterBrokers) for finder in sys.meta_path):
        sys.meta_path.insert(0, _AfterBrokers())


register()
