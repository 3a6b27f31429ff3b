"""What acts: each carries out one kind of effect."""
