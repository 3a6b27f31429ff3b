"""What is remembered: folds over events, found by rules in the snapshot as `curr.own[NAME]`."""
