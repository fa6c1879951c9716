"""What these tests share."""
