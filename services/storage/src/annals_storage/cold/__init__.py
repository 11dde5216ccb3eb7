"""Files and object stores, through fsspec."""
