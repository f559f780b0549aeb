"""Settings, addresses, processes: the ground under every app."""
