"""Write the table of settings into docs/settings.md: `python -m tests.docs.settings`."""

from collections.abc import Iterator
from pathlib import Path

from stacks.settings.clusters import KubernetesClusters
from stacks.settings.config import settings
from stacks.settings.setting import Setting
from tests.docs.markdown import with_section

PAGE = Path(__file__).parents[2] / "docs" / "settings.md"
BEGIN, END = "<!-- settings: written by tests/docs/settings.py -->", "<!-- /settings -->"


def table() -> str:
    """Return the table of all settings in Markdown, and the patterns of the text settings."""
    head = "| Setting | Default | Allowed | Meaning |\n|---|---|---|---|\n"
    return head + "".join(map(_row, settings())) + "\nText must match:\n\n" + "".join(_patterns())


def _row(setting: Setting) -> str:
    cells = (f"`{setting.name}`", _default(setting), _allowed(setting), setting.description)
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"


def _default(setting: Setting) -> str:
    if setting.default is None:
        return ""
    text = str(setting.default).lower() if isinstance(setting.default, bool) else str(setting.default)
    return f"`{text}` {setting.unit}".rstrip()


def _allowed(setting: Setting) -> str:
    if setting.choices is not None and setting.kind is str:
        return f"words of {', '.join(f'`{word}`' for word in setting.choices)}, separated by commas"
    if setting.choices is not None:
        return f"{len(setting.choices)} values from {min(setting.choices)} to {max(setting.choices)} {setting.unit}"
    if setting.minimum is not None:
        return f"{setting.minimum} to {setting.maximum} {setting.unit}".rstrip()
    if setting.kind in (str, KubernetesClusters):
        return "text" if setting.kind is str else "a JSON object"
    return "`true`, `false`" if setting.kind is bool else "a file"


def _patterns() -> Iterator[str]:
    for setting in settings():
        if setting.pattern is not None:
            yield f"- `{setting.name}`: `{setting.pattern}`\n"


def page(text: str) -> str:
    """Return the page with its table updated."""
    return with_section(text, BEGIN, END, table())


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text()))
