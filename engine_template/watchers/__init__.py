"""What senses: each brings samples of one key, on a schedule of its own."""
