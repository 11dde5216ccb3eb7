"""Annals on one machine: PostgreSQL, storage and context with one command."""
