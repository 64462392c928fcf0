"""The `omni-neuron` command: it finds verbs, renders their help and their errors, and calls them."""
