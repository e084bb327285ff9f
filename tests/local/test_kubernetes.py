"""The Kubernetes cluster is built once for each state of its source, and one that does not start says why."""

import pytest

from signalbox.errors import UnavailableError
from signalbox.local import kubernetes, tools

# Writes a program that prints what a cluster prints when it is ready, and then waits for the end of its input.
GO = """#!/bin/sh
while [ "$1" != "-o" ]; do shift; done
grep -q broken main.go && echo "main.go:1: broken" >&2 && exit 1
printf '#!/bin/sh\\n%s\\n' "$(cat main.go)" > "$2" && chmod +x "$2"
"""
READY = """echo '{"endpoint": "https://127.0.0.1:1", "ca": "CA", "token": "secret"}'; cat"""


@pytest.fixture
def source(monkeypatch, tmp_path):
    go, source = tmp_path / "go", tmp_path / "source"
    go.write_text(GO)
    go.chmod(0o755)
    source.mkdir()
    (source / "main.go").write_text(READY)
    monkeypatch.setattr(tools, "TOOLS", tmp_path / "tools")
    monkeypatch.setattr(tools, "go", lambda: go)
    monkeypatch.setattr(kubernetes, "SOURCE", source)
    return source / "main.go"


def test_each_source_is_built_once(source):
    assert not kubernetes.is_built()
    first = kubernetes.program()
    assert kubernetes.is_built()
    source.with_name("go.mod").write_text("go 1.24")
    assert not kubernetes.is_built()

    assert kubernetes.program() != first
    source.with_name("go.mod").unlink()
    assert kubernetes.program() == first


def test_a_failed_build_says_why_and_leaves_nothing(source):
    source.write_text("broken")

    with pytest.raises(UnavailableError, match=r"could not build the Kubernetes cluster:\nmain.go:1: broken"):
        kubernetes.program()

    assert not kubernetes.is_built()


def test_a_cluster_has_what_its_program_prints_and_shows_no_token(source, tmp_path):
    with kubernetes.running(tmp_path / "cluster") as cluster:
        assert (cluster.endpoint, cluster.ca, cluster.token) == ("https://127.0.0.1:1", "CA", "secret")
        assert "secret" not in repr(cluster)


def test_a_cluster_that_does_not_start_shows_the_end_of_its_log(source, tmp_path):
    source.write_text("echo 'the port is taken' >&2; exit 1")

    with pytest.raises(UnavailableError, match="did not start; the end of its log:\nthe port is taken"):
        kubernetes.running(tmp_path / "cluster").__enter__()
