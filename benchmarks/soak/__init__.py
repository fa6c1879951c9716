"""Long runs that check for memory growth."""
