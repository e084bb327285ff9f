"""Topic matching as a direct transcription of the rules, without regard to time."""

from collections.abc import Sequence


def is_match(pattern: str, key: str) -> bool:
    return _words_match(_words(pattern), _words(key))


def _words(topic: str) -> list[str]:
    if topic == "":
        return []
    words = [""]
    for character in topic:
        if character == ".":
            words.append("")
        else:
            words[-1] += character
    return words


def _words_match(pattern: Sequence[str], key: Sequence[str]) -> bool:
    if not pattern:
        return not key
    if pattern[0] == "#":
        return _words_match(pattern[1:], key) or (bool(key) and _words_match(pattern, key[1:]))
    return bool(key) and pattern[0] in ("*", key[0]) and _words_match(pattern[1:], key[1:])
