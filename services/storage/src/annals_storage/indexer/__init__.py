"""Mirrors events into the vector engine."""
