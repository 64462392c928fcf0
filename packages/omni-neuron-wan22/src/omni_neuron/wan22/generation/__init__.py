"""From the arguments of `omni-neuron generate` to the files that it writes."""
