"""The garbage collector in a test process, which has a million objects that never become garbage.

Each full collection visits the modules of boto3, moto and the CDK and all collected tests, which takes a second; the
default settings would cause one after every few hundred tests, and dozens while tests are imported.
"""

import gc

# Objects that a collection of the youngest generation waits for, and the collections of a generation before the next's.
THRESHOLDS = (20_000, 20, 20)


def postpone() -> None:
    """Collect no garbage until `begin`."""
    gc.disable()


def begin() -> None:
    """Collect the garbage of objects that are created from now on."""
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)
    gc.enable()
