"""Tables from files and releases back into them."""
