"""What all tests share."""

import os

from hypothesis import settings

# No deadline: how long an example takes says more about the machine's neighbours than about the code. In CI the
# examples are the same every time, so that a failure there is the change's own; at a desk they are new ones.
settings.register_profile("signalbox", deadline=None, derandomize="CI" in os.environ)
settings.load_profile("signalbox")
