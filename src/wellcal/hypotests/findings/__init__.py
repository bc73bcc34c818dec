"""What kind of error a test found: sentences with numbers and intervals."""
