"""Patch: the account's root is one random key instead of MiniStack's well-known ones.

MiniStack accepts `test`, any twelve digits and a missing key as root and does not check the signature, which would make
enforcement meaningless. The random key never leaves the process that starts the emulator.
"""

from collections.abc import Mapping

from signalbox.local.emulator.patches.patch import Patch

IS_ROOT = "ministack.core.iam_evaluator:is_root_access_key"


def patch(root_access_key_id: str) -> Patch:
    """Return the patch for an emulator with this root key."""

    def is_root_access_key(access_key_id: str) -> bool:
        return access_key_id == root_access_key_id

    def replacements() -> Mapping[str, object]:
        return {IS_ROOT: is_root_access_key}

    return Patch(sources={IS_ROOT: "e6ae3b63335593c0"}, replacements=replacements)
