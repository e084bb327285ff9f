"""Java names are looked up once, which makes jobs over few rows faster."""

from signalbox.local.spark.job_runner import caching


class Names:
    def __init__(self, find):
        self.find = find

    __getattr__ = caching(lambda names, name: names.find(name))


def test_each_name_is_looked_up_once():
    asked = []
    names = Names(lambda name: asked.append(name) or f"the {name}")

    assert [names.functions, names.functions, names.org] == ["the functions", "the functions", "the org"]
    assert asked == ["functions", "org"]
