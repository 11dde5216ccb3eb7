"""Embedding models and sparse encoders."""
