// Nothing: what runs a kernel on a CPU brings its own bf16.
