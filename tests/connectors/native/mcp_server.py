"""A real MCP server with tools that read, one that writes, and resources; over stdio when it is run."""

from __future__ import annotations

import os
import sys

from mcp.server.mcpserver import MCPServer
from mcp.types import ToolAnnotations

READ_ONLY = ToolAnnotations(read_only_hint=True)
BIRDS = [
    {"title": "Grey heron", "url": "https://birds.example/heron", "text": "Herons wade."},
    {"title": "苍鹭", "url": "https://birds.example/canglu", "text": "苍鹭涉水。"},
]


def make_server() -> MCPServer:
    """The same one over each transport."""
    server = MCPServer("birds")

    @server.tool(title="Bird notes", annotations=READ_ONLY)
    def notes(bird: str, language: str = "en") -> str:
        """What is known of a bird."""
        return f"# {bird}\n\n{language}: 涉水 wades."

    @server.tool(annotations=READ_ONLY)
    def search(query: str, limit: int = 10) -> list[dict[str, str]]:
        """Find birds."""
        return [one for one in BIRDS if query in one["text"] or query in one["title"]][:limit]

    @server.tool()
    def forget(bird: str) -> str:
        """Says nothing of whether it only reads."""
        return f"{bird} is forgotten."

    @server.tool(annotations=READ_ONLY)
    def broken() -> str:
        """Fails."""
        raise ValueError("The nest is empty.")

    @server.tool(annotations=READ_ONLY)
    def environment() -> str:
        """What this process was given."""
        return "\n".join(sorted(os.environ))  # noqa: TID251 - the point of it

    @server.resource("birds://list", title="All birds", mime_type="text/markdown")
    def birds() -> str:
        return "- heron\n- 苍鹭"

    @server.resource("birds://photo", mime_type="text/csv")
    def photo() -> bytes:
        return "bird,count\n苍鹭,3\n".encode()

    return server


if __name__ == "__main__":
    if "--silent" in sys.argv:
        sys.exit(3)
    make_server().run("stdio")
