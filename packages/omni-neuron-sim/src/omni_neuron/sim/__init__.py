"""A Neuron machine made of CPU. So far: the numbers of the machine."""
