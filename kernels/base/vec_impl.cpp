// vec_impl: the vector loops; compiled once per instruction set (PAL_ISA).
