"""GitHub: files, issues, pull requests and releases of many repositories."""
