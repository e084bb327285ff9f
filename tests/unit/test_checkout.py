"""The checkout, whose other packages the command imports."""

import pytest

from signalbox import checkout
from signalbox.errors import RejectedError


def test_a_command_that_needs_the_checkout_is_refused_without_one(tmp_path, monkeypatch) -> None:
    checkout.require_checkout()
    monkeypatch.setattr(checkout, "CHECKOUT", tmp_path)

    with pytest.raises(
        RejectedError, match="needs a checkout of Signalbox, not an installation: clone its repository, run `make up`"
    ):
        checkout.require_checkout()
