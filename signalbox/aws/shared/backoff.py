"""The back-off of calls outside functions: the system's clock, and no deadline."""

import random

from signalbox.aws.shared.settings import SystemClock
from signalbox.backoff import Backoff

BACKOFF = Backoff(SystemClock(), random.random)
