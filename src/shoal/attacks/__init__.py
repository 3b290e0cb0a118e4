"""What an intruder does with a release, and how often it works."""
