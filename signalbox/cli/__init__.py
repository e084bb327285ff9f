"""The `signalbox` command."""

INTERRUPTED = 130


def run() -> None:
    """Run the command line; an interrupt while its modules are imported has no traceback either."""
    try:
        from signalbox.cli.main import main

        main()
    except KeyboardInterrupt:
        raise SystemExit(INTERRUPTED) from None
