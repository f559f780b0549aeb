"""What is to be read of GitHub, and how one proves who one is."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, SecretStr

from connectors.base import OAuthTokens, Settings, TokenCredentials

_SECRET = Field(
    default=SecretStr(""),
    title="Webhook secret",
    description="The secret of the webhook that tells of changes, if there is one.",
)


class GithubToken(TokenCredentials):
    """A personal access token, classic or fine-grained, that may read contents, issues and discussions."""

    webhook_secret: SecretStr = _SECRET


class GithubSignIn(OAuthTokens):
    """A sign-in."""

    webhook_secret: SecretStr = _SECRET


class GithubConfig(Settings):
    """Which repositories, and what of them."""

    repositories: list[str] = Field(
        default=[],
        title="Repositories",
        description="As owner/name. Empty, and no organisation: all that the account sees.",
    )
    organisation: str = Field(
        default="", title="Organisation", description="All repositories of an organisation."
    )
    code: Literal["all", "readme", "none"] = Field(default="all", title="Files")
    branch: str = Field(default="", title="Branch", description="Empty: each one's default.")
    include: list[str] = Field(
        default=[], title="Only these files", description="Patterns such as *.md or docs/*."
    )
    exclude: list[str] = Field(
        default=["*.lock", "*.min.*", "*.map", "package-lock.json", "*node_modules/*", "vendor/*"],
        title="Not these files",
    )
    max_file_kb: int = Field(default=1000, ge=1, le=100_000, title="Largest file, in KB")
    issues: bool = Field(default=True, title="Issues", description="With their comments.")
    pull_requests: bool = Field(
        default=True, title="Pull requests", description="With comments and reviews."
    )
    discussions: bool = Field(
        default=True, title="Discussions", description="With comments and replies."
    )
    releases: bool = Field(default=True, title="Releases")
    wiki: bool = Field(default=False, title="Wikis", description="The pages of each one's wiki.")
    archived: bool = Field(default=True, title="Archived repositories too")
    people: list[str] = Field(
        default=[],
        title="Mail addresses",
        description="Who is who, as “login ana@example.com”, for people who do not show theirs.",
    )
    api_url: str = Field(
        default="https://api.github.com",
        title="API address",
        description="Of GitHub Enterprise Server: https://HOST/api/v3.",
    )
