"""The MPIs for each of which engine/api/mpi is built, since their headers never meet."""

MPIS = {
    "abi": "@mpi_abi",  # any that has the standard ABI
    "mpich": "@mpich",
    "openmpi": "@openmpi",
}
