"""What surrounds every call: request ids, logs, metrics, errors, credentials, limits."""
