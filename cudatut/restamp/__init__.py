"""Accept without a GPU that a recording's sources were moved or rewritten, where what ran is provably the same."""
