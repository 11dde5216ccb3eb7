"""Vector engines behind one port."""
