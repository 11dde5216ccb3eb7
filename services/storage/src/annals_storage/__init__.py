"""Annals storage: the source of truth for conversations and events."""
