"""Long runs that check for memory growth, and for lost calls while workers are killed."""
