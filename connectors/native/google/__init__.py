"""Google Workspace: mail and files."""
