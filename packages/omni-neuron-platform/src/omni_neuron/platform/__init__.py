"""The plugin that gives vLLM-Omni's diffusion engine a Neuron platform.

Nothing is imported here: the entry points load `omni_neuron.platform.plugin`, which stays light, and the
engine loads the platform, worker, runner and attention classes by their dotted paths.
"""
