"""Writes the table of settings from the stage's own list of them: `python -m tests.docs.settings`."""

from pathlib import Path

from stacks.config import Setting, settings

PAGE = Path(__file__).parents[2] / "docs" / "settings.md"
BEGIN, END = "<!-- settings: written by tests/docs/settings.py -->", "<!-- /settings -->"


def table() -> str:
    """Return the table of all settings in Markdown."""
    head = "| Setting | Default | Unit | Allowed | Meaning |\n|---|---|---|---|---|\n"
    return head + "".join(_row(setting) for setting in settings())


def _row(setting: Setting) -> str:
    default = "" if setting.default is None else f"`{_text(setting.default)}`"
    cells = (f"`{setting.name}`", default, setting.unit, _allowed(setting), setting.description)
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _allowed(setting: Setting) -> str:
    if setting.choices is not None:
        return f"{len(setting.choices)} values from {min(setting.choices)} to {max(setting.choices)}"
    if setting.minimum is not None:
        return f"{setting.minimum} to {setting.maximum}"
    if setting.pattern is not None:
        return f"`{setting.pattern}`"
    return "`true`, `false`" if setting.kind is bool else "a file"


def page(text: str) -> str:
    """Return the page with its table brought up to date."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{table()}{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text()))
