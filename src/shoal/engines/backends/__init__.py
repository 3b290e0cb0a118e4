"""What differs between the databases and clusters that hold rows."""
