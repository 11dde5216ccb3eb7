"""What Annals' services share."""
