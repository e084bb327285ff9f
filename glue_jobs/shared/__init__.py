"""Modules that several Glue jobs share: arguments, tables, files, reports and replays."""
