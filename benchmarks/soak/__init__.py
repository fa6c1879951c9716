"""Long runs: does memory stay flat, and is every call answered while workers are killed?"""
