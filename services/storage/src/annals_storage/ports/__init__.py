"""What the use cases need from the outside world. `app` chooses who provides it."""
