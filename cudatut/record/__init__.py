"""Make recordings: run examples as notebooks, under sanitizers, and keep what is whole and good."""
