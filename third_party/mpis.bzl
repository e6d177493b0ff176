"""The MPIs for which engine/api/mpi is built, one target each, since their headers cannot be mixed."""

MPIS = {
    "abi": "@mpi_abi",  # any MPI with the standard ABI
    "mpich": "@mpich",
    "openmpi": "@openmpi",
}
