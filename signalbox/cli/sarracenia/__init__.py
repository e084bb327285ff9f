"""Commands that announce and download files as Sarracenia does."""
