"""Providers' formats: canonical events to payloads and back."""
