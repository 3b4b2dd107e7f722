// world: MPI from its start to its end.
