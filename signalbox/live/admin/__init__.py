"""Administration of realms: commands, grants, and the files of the live page."""
