"""A CUDA training script without a GPU: tensors on the device have a shape and a type but no numbers, and every wait
of the CPU for the GPU is recorded with the line that asked for it."""
