"""What decides: each looks at a snapshot, asks the rules inside it, and answers with wishes."""
