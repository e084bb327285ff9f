"""The command's subcommands for the exchange."""
