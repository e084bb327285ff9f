"""Upstream's client program as Tor runs it: a pluggable transport that gets a bridge line's arguments over SOCKS5."""

import os
import socket
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

FIELD_BYTES = 255  # of SOCKS5's user name, and of its password (RFC 1929)
VERSION, CONNECT, IPV4, PASSWORD_METHOD = 5, 1, 1, 2


def socks_arguments(bridge_line: str) -> bytes:
    """Return the arguments of a line of Tor's configuration as Tor gives them to the transport."""
    keyword, transport, _address, _fingerprint, *arguments = bridge_line.split()
    assert (keyword, transport) == ("Bridge", "snowflake")
    # pt-spec.txt, section 3.5: joined by semicolons, with backslashes before semicolons and backslashes.
    escaped = (argument.replace("\\", "\\\\").replace(";", "\\;") for argument in arguments)
    joined = ";".join(escaped).encode()
    assert len(joined) <= 2 * FIELD_BYTES, "Tor refuses the line"
    return joined


@contextmanager
def running_transport(program: Path, folder: Path, environment: Mapping[str, str]) -> Iterator[tuple[str, int]]:
    """Run the client program with its log in `folder`; yield the address of its SOCKS5 listener."""
    command = [str(program), "-log", str(folder / "log"), "-unsafe-logging"]
    variables = {
        **os.environ,
        **environment,
        "TOR_PT_MANAGED_TRANSPORT_VER": "1",
        "TOR_PT_CLIENT_TRANSPORTS": "snowflake",
        "TOR_PT_STATE_LOCATION": str(folder),
    }
    with subprocess.Popen(  # noqa: S603 - the program that was just built
        command, env=variables, cwd=folder, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            # `CMETHOD snowflake socks5 127.0.0.1:PORT` (pt-spec.txt, section 3.3.2)
            method = next(line for line in process.stdout if line.startswith("CMETHOD snowflake socks5 "))
            host, _, port = method.split()[3].rpartition(":")
            yield host, int(port)
        finally:
            process.terminate()


@contextmanager
def connected(listener: tuple[str, int], arguments: bytes) -> Iterator[socket.socket]:
    """Connect to the transport as Tor does; it accepts if it can read the arguments."""
    user, password = arguments[:FIELD_BYTES], arguments[FIELD_BYTES:] or b"\0"
    with socket.create_connection(listener) as connection:
        connection.sendall(bytes([VERSION, 1, PASSWORD_METHOD]))
        assert connection.recv(2) == bytes([VERSION, PASSWORD_METHOD])
        connection.sendall(bytes([1, len(user)]) + user + bytes([len(password)]) + password)
        assert connection.recv(2) == bytes([1, 0])
        connection.sendall(bytes([VERSION, CONNECT, 0, IPV4, *(192, 0, 2, 5), 0, 80]))
        assert connection.recv(10)[1] == 0, "the transport refuses the arguments"
        yield connection
