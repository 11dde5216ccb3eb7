"""Extractive summaries: sentences as they were said, chosen, cited, and measured. Pure."""
