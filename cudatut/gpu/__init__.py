"""What a reader of the book calls: the GPU, its memory, kernels, checks, benchmarks, limits, rivals, profiles."""
