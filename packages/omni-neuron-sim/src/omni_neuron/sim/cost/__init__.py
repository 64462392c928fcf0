"""What a kernel costs: a trace of its instructions, played against the engines of the machine."""
