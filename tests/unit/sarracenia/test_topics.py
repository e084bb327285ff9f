"""Topics of paths: pairs measured by having sr3 3.3.1 post each path."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signalbox.sarracenia.topics import InvalidTopic, escaped, unescaped

LEVELS = "/".join(f"level{number:02}" for number in range(40)) + "/f"
MEASURED = [
    ("a/b/c/d/foo.txt", "v03.a.b.c.d"),
    ("/a/b/c/d/foo.txt", "v03..a.b.c.d"),
    ("foo.txt", "v03"),
    ("/foo.txt", "v03."),
    ("", "v03"),
    ("/", "v03."),
    ("//", "v03.."),
    ("a/b/", "v03.a.b"),
    ("a//b/foo.txt", "v03.a..b"),
    ("a/../b/f", "v03.a....b"),
    ("dir.with.dots/v1.2/file.txt", "v03.dir.with.dots.v1.2"),
    ("dir with space/sub dir/f", "v03.dir with space.sub dir"),
    ("a\tb\n/f", "v03.a\tb\n"),
    ("a#b/c/file.txt", "v03.a%23b.c"),
    ("a*b/*/file.txt", "v03.a%22b.%22"),
    ("a%23b/%22/f", "v03.a%23b.%22"),
    ("~user/.hidden/f", "v03.~user..hidden"),
    ("UPPER/lower/MiXeD/F", "v03.UPPER.lower.MiXeD"),
    ("café/温度/f.txt", "v03.café.温度"),
    ("x" * 250 + "/f", "v03." + "x" * 250),
    ("x" * 251 + "/f", "v03." + "x" * 251),
    ("x" * 252 + "/f", "v03." + "x" * 251),
    ("#" * 84 + "/f", "v03." + "%23" * 83 + "%2"),
    ("é" * 125 + "/f", "v03." + "é" * 125),
    ("é" * 251 + "/f", "v03." + "é" * 125),
    ("a" + "é" * 260 + "/f", "v03.a" + "é" * 125),
    ("温" * 83 + "/f", "v03." + "温" * 83),
    ("a" + "温" * 260 + "/f", "v03.a" + "温" * 83),
    ("aa" + "温" * 260 + "/f", "v03.aa" + "温" * 83),
    ("aa" + "😀" * 260 + "/f", "v03.aa" + "😀" * 62),
    ("aaa" + "😀" * 260 + "/f", "v03.aaa" + "😀" * 62),
]


def topic_of(path: str, *, prefix: str = "v03") -> str:
    """Return the topic of a file: the prefix and the path's directories, escaped."""
    return escaped(".".join((prefix, *path.split("/")[:-1])))


@pytest.mark.parametrize(("path", "topic"), MEASURED, ids=[ascii(path)[:40] for path, _ in MEASURED])
def test_a_path_has_sr3s_topic(path, topic):
    assert topic_of(path) == topic


def test_forty_levels_are_cut_at_255_characters():
    topic = topic_of(LEVELS)

    assert len(topic) == 255
    assert topic.endswith("level30.lev")


@pytest.mark.parametrize(
    ("path", "topic"),
    [
        ("a/b/c/d/foo.txt", "v02.post.a.b.c.d"),
        ("/foo.txt", "v02.post."),
        ("foo.txt", "v02.post"),
        ("x" * 252 + "/f", "v02.post." + "x" * 246),
        ("温" * 260 + "/f", "v02.post." + "温" * 82),
        ("é" * 251 + "/f", "v02.post." + "é" * 123),
    ],
)
def test_a_path_has_sr3s_topic_in_v02(path, topic):
    assert topic_of(path, prefix="v02.post") == topic


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("é" * 126 + "/f", "256 bytes"),
        ("温" * 84 + "/f", "256 bytes"),
        ("温" * 260 + "/f", "when it is cut"),
        ("😀" * 260 + "/f", "when it is cut"),
        ("a" + "😀" * 260 + "/f", "when it is cut"),
        ("\udce9/f", "not UTF-8"),
    ],
    ids=["126 of two bytes", "84 of three", "cut in three", "cut after three of four", "after two of four", "latin-1"],
)
def test_a_path_that_sr3_fails_to_post_is_refused(path, problem):
    """Measured: sr3 raises UnicodeDecodeError at the cut, or py-amqp refuses the topic."""
    with pytest.raises(InvalidTopic, match=problem):
        topic_of(path)


@given(st.text(st.sampled_from("abé温/.#*"), max_size=30))
def test_an_escaped_topic_round_trips(path):
    assert unescaped(topic_of(path)) == ".".join(["v03", *path.split("/")[:-1]])
