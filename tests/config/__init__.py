"""Settings, embedded servers, processes, deployment files."""
