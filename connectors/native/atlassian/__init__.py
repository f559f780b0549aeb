"""Atlassian's cloud: Jira and Confluence."""
