"""The refresh tokens of this machine's user, in a file that only this user can read."""

import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from signalbox.clients.identity.tokens import TokenRequest
from signalbox.errors import RejectedError

FOLDER_MODE, FILE_MODE = 0o700, 0o600
OTHERS = 0o077


def state_folder() -> Path:
    """Return the folder of the user's state (XDG Base Directory Specification)."""
    base = os.environ.get("XDG_STATE_HOME", "")
    return (Path(base) if Path(base).is_absolute() else Path.home() / ".local" / "state") / "signalbox"


@dataclass(frozen=True, slots=True)
class SignIn:
    """A stored sign-in: the token that it is for, and the refresh token."""

    asked: TokenRequest
    refresh_token: str


@dataclass(frozen=True, slots=True)
class SignIns:
    """The stored sign-ins. Commands that run at the same time share them: each change is made under a lock.

    A refresh token may be valid only once (RFC 9700, 4.14.2), so `locked` also spans the request that replaces it. A
    sign-in serves the stage of one live page, `page`: another page may name the same provider and get the token.
    """

    folder: Path
    page: str = ""

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the lock of the file; the others wait."""
        self.folder.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
        with os.fdopen(os.open(self.folder / "sign-ins.lock", os.O_CREAT | os.O_RDWR, FILE_MODE), "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def find(self, asked: TokenRequest) -> str | None:
        """Return the refresh token of a sign-in, or None."""
        return self._read().get(self._key(asked))

    def every(self) -> list[SignIn]:
        """Return the sign-ins of all pages."""
        return [SignIn(_asked(key), token) for key, token in self._read().items()]

    def put(self, asked: TokenRequest, refresh_token: str) -> None:
        """Store a refresh token, replacing an older one. Call it with the lock."""
        self._write({**self._read(), self._key(asked): refresh_token})

    def remove(self, asked: TokenRequest) -> None:
        """Remove a sign-in, if it exists, of all pages. Call it with the lock."""
        self._write({key: token for key, token in self._read().items() if _asked(key) != asked})

    def _key(self, asked: TokenRequest) -> str:
        return json.dumps([asked.issuer, asked.client_id, asked.audience, self.page])

    @property
    def _file(self) -> Path:
        return self.folder / "sign-ins.json"

    def _read(self) -> dict[str, str]:
        try:
            if self._file.stat().st_mode & OTHERS:
                raise RejectedError(f"others can read {self._file}: run `chmod 600 {self._file}`, then sign out and in")
            document = json.loads(self._file.read_text())
        except FileNotFoundError:
            return {}
        except ValueError as error:
            raise RejectedError(f"{self._file} is damaged: delete it, and sign in again") from error
        return {str(key): str(token) for key, token in document.items()}

    def _write(self, document: Mapping[str, str]) -> None:
        unfinished = self._file.with_suffix(".new")
        with os.fdopen(os.open(unfinished, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, FILE_MODE), "w") as file:
            json.dump(document, file)
        unfinished.replace(self._file)


def _asked(key: str) -> TokenRequest:
    return TokenRequest(*json.loads(key)[:3])
