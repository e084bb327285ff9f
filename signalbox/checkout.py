"""The checkout of the repository: the command imports its other packages, which an installed one does not have."""

from pathlib import Path

from signalbox.errors import RejectedError

CHECKOUT = Path(__file__).resolve().parents[1]


def require_checkout() -> None:
    """Raise `RejectedError` without a checkout."""
    if not (CHECKOUT / "app.py").exists():
        raise RejectedError(
            "this command needs a checkout of Signalbox, not an installation: clone its repository, run `make up` or "
            "`make deploy` there, and then its .venv/bin/signalbox"
        )
