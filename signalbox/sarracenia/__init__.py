"""Sarracenia: announcements of files, their topics and formats, and the permissions of users."""
