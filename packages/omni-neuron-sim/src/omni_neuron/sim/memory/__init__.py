"""HBM, SBUF and PSUM: buffers, the tensors that view them, and reads and writes that know what is defined."""
