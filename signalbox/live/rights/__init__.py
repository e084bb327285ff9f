"""Rights in a realm: principals, their grants, and what a right covers."""
