"""Lets sr3 use a stage as its broker: makes the scheme `amqpsqs` known as soon as sr3 knows its own brokers.

Imported at the start of Python, by the file `signalbox-sr3.pth` that comes with the package, and by `import
signalbox.sr3` in configurations of sr3, which `sr3 declare` and `sr3 cleanup` do not read. All Python programs of an
environment pay for what is imported here: hence no driver and no boto before sr3 itself is there.
"""

import sys
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

BROKERS = "sarracenia.moth"
DRIVER = "signalbox.sr3.driver"


class _AfterBrokers:
    """Finds sr3's brokers as Python does, and has ours imported after them."""

    def find_spec(self, name: str, path: object = None, _target: object = None) -> ModuleSpec | None:
        """Return how sr3's brokers are loaded, and nothing of any other module."""
        if name != BROKERS:
            return None
        spec = PathFinder.find_spec(name, path)  # type: ignore[arg-type]  # whatever Python gave us, it may have back
        if spec is not None and spec.loader is not None:
            load = spec.loader.exec_module

            def load_both(module: ModuleType) -> None:
                load(module)
                import_module(DRIVER)

            spec.loader.exec_module = load_both  # type: ignore[method-assign]  # of this one loader
        return spec


def register() -> None:
    """Make the scheme known, now if sr3 is there, else when it is. Does nothing the second time."""
    if BROKERS in sys.modules:
        import_module(DRIVER)
    elif not any(isinstance(finder, _AfterBrokers) for finder in sys.meta_path):
        sys.meta_path.insert(0, _AfterBrokers())


register()
