"""The command line over the client. One module per group of commands."""
