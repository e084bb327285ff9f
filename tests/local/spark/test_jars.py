"""What a user sees of a program in Java."""

from signalbox.local.spark.jars import without_noise


def test_lines_that_name_a_cause_or_a_result_remain():
    lines = [
        "WARNING: sun.reflect.Reflection.getCallerClass is not supported. This will impact performance.\n",
        "compact_history: 144 rows read\n",
        "java.lang.IllegalStateException: no table\n",
        "\tat org.apache.spark.Job.run(Job.java:7)\n",
        "\t... 12 more\n",
        "   ^^^^^\n",
        "WARNING: low on memory\n",
    ]

    assert list(without_noise(lines)) == [
        "compact_history: 144 rows read",
        "java.lang.IllegalStateException: no table",
        "WARNING: low on memory",
    ]
