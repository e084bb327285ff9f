"""Options of `signalbox split run` for a handler instead of a command."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Annotated

import typer

from signalbox.clients.splitting.handler.settings import (
    LARGEST_BATCH,
    LONGEST_TIMEOUT_SECONDS,
    LONGEST_WINDOW_SECONDS,
    Overrides,
)
from signalbox.clients.splitting.handler.template import TemplateFunction, template_function
from signalbox.errors import RejectedError


@dataclass(frozen=True, slots=True)
class HandlerOptions:
    """The options of a handler; exactly one of `handler` and `endpoint` is to be set."""

    handler: Annotated[
        str | None,
        typer.Option(
            help="Python handler to invoke with Lambda's event, instead of a command.", metavar="MODULE.FUNCTION"
        ),
    ] = None
    endpoint: Annotated[
        str | None,
        typer.Option(
            help="URL of a Lambda runtime interface emulator to invoke with Lambda's event, instead of a command.",
            metavar="URL",
        ),
    ] = None
    code: Annotated[
        Path | None,
        typer.Option(
            help="Folder of the handler's code, by default the current one; the handler is loaded again when it "
            "changes."
        ),
    ] = None
    python: Annotated[
        str | None,
        typer.Option(help="Python that runs the handler; by default that of the active virtual environment."),
    ] = None
    template: Annotated[
        Path | None,
        typer.Option(help="SAM or CloudFormation template (such as cdk.out/STACK.template.json) with the function."),
    ] = None
    resource: Annotated[
        str | None,
        typer.Option(
            help="The function's logical id or construct path in the template, if it has several.", metavar="ID"
        ),
    ] = None
    batch_size: Annotated[
        int | None,
        typer.Option(help="Messages in a batch; by default the mapping's, or 10.", min=1, max=LARGEST_BATCH),
    ] = None
    window: Annotated[
        int | None,
        typer.Option(
            help="Seconds in which a batch is gathered; by default the mapping's, or 0.",
            min=0,
            max=LONGEST_WINDOW_SECONDS,
        ),
    ] = None
    timeout_seconds: Annotated[
        int | None,
        typer.Option(
            help="Seconds after which a handler is killed; by default the function's, or 3.",
            min=1,
            max=LONGEST_TIMEOUT_SECONDS,
        ),
    ] = None
    no_timeout: Annotated[bool, typer.Option("--no-timeout", help="Run the handler without a time limit.")] = False
    report_failures: Annotated[
        bool | None,
        typer.Option(
            "--report-batch-item-failures/--ignore-batch-item-failures",
            help="The handler's response names the failed messages; default: the mapping's setting.",
            show_default=False,
        ),
    ] = None
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document for each batch of a handler.")] = (
        False
    )

    @property
    def overrides(self) -> Overrides:
        """The options that override the deployed settings."""
        return Overrides(self.batch_size, self.window, self.timeout_seconds, self.report_failures)

    def check(self, *, has_command: bool) -> None:
        """Raise `RejectedError` unless there is one way to consume, and no option of another way."""
        if sum((has_command, self.handler is not None, self.endpoint is not None)) != 1:
            raise RejectedError("give one of these: a command after --, --handler MODULE.FUNCTION, or --endpoint URL")
        of_handlers = {"--code": self.code, "--python": self.python}
        for name in _given(of_handlers) if self.handler is None else ():
            raise RejectedError(f"{name} is for --handler only")
        of_functions = {
            "--template": self.template,
            "--resource": self.resource,
            "--batch-size": self.batch_size,
            "--window": self.window,
            "--timeout-seconds": self.timeout_seconds,
            "--report-batch-item-failures": self.report_failures,
            "--no-timeout": self.no_timeout or None,
            "--json": self.as_json or None,
        }
        for name in _given(of_functions) if has_command else ():
            raise RejectedError(f"{name} is for --handler and --endpoint only")

    def template_function(self) -> TemplateFunction | None:
        """Return the function in the template. Raises `InvalidTemplate`."""
        from signalbox.cli.shared.files import read_text
        from signalbox.cli.splitting.handler.template_file import parse_template

        if self.template is None:
            if self.resource is not None:
                raise RejectedError("--resource needs --template")
            return None
        return template_function(parse_template(read_text(self.template), str(self.template)), self.resource)

    def timeout(self, settings: timedelta) -> timedelta | None:
        """Return the time-out to enforce, or None."""
        return None if self.no_timeout else settings


def _given(options: Mapping[str, object]) -> list[str]:
    return [name for name, value in options.items() if value is not None]
