"""kombu's common cases, subclassed as kombu does for its own transports. The test of the suites runs this."""

from t.integration import common


class TestBasicFunctionality(common.BasicFunctionality):
    """Connections, queues and buffers."""


class TestExchangeTypes(common.BaseExchangeTypes):
    """Direct, topic and fanout exchanges."""


class TestTimeToLive(common.BaseTimeToLive):
    """Messages that expire."""


class TestPriority(common.BasePriority):
    """Priorities as RabbitMQ has them: higher numbers first."""


class TestFailover(common.BaseFailover):
    """A second broker URL."""


class TestMessage(common.BaseMessage):
    """Acknowledgements and rejections."""


class TestEventLoop(common.BaseEventLoop):
    """Deliveries from an event loop."""
