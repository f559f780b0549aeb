"""The embedded PostgreSQL and Valkey: the production engines, run from their wheels in the data folder."""
