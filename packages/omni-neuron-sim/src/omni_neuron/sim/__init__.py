"""The place for a Neuron machine made of CPU. So far it holds the published numbers of the machine."""
