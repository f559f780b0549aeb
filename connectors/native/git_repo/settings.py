"""What is asked of who connects a git repository."""

from __future__ import annotations

from pydantic import Field, SecretStr

from connectors.base import Settings

DEPTH = 1000  # commits that are fetched and looked through for authors and times


class GitRepoConfig(Settings):
    """Which repository, and what of it."""

    repository: str = Field(
        title="Repository",
        description="https:// or ssh:// address, or the path of a folder on the server.",
    )
    branches: list[str] = Field(
        default=[],
        title="Branches",
        description="Names or patterns such as release/*; empty: the default branch.",
    )
    include: list[str] = Field(
        default=[],
        title="Only these",
        description="Patterns such as *.md or docs/*; empty: everything.",
    )
    exclude: list[str] = Field(
        default=[], title="Not these", description="Patterns such as *.lock or vendor/*."
    )
    max_file_kb: int = Field(
        default=2048,
        ge=1,
        le=200 * 1024,
        title="Largest file in KB",
        description="Larger: left out.",
    )
    commits: int = Field(
        default=0, ge=0, le=DEPTH, title="Recent commits",
        description="How many commits become documents too; 0: none.",
    )  # fmt: skip


class GitToken(Settings):
    """An access token, which hosts take as a password."""

    token: SecretStr = Field(title="Access token")
    username: str = Field(
        default="x-access-token", title="User name", description="What the host wants beside it."
    )


class SshKey(Settings):
    """A key that opens the repository, without a passphrase."""

    private_key: SecretStr = Field(title="Private key")
