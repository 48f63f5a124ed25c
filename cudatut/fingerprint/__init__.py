"""What a recording depends on, and when a change of it means the same."""
