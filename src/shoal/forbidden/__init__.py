"""Results that must not come out of a release: mined, and suppressed with the fewest cells."""
