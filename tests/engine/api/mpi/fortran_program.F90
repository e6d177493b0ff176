! An MPI program in Fortran without any use of Rankine: every call that the preload library takes over, in place and
! apart, blocking and nonblocking. It prints the same result with and without the library: "N passed, M failed".
program fortran_program
#ifdef FORTRAN_2008
  use mpi_f08
#else
  use mpi
#endif
  implicit none
  integer :: rank, ranks, error, turn, passed = 0, failed = 0, total, i, before
  call MPI_Init(error)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, error)
  total = ranks * (ranks - 1) / 2
  do turn = 1, 4
    call reductions()
    call moves()
    call started()
    call MPI_Barrier(MPI_COMM_WORLD, error)
    call check('MPI_Barrier', .true.)
  end do
  if (rank == 0) print '(i0, a, i0, a)', passed, ' passed, ', failed, ' failed'
  call MPI_Finalize(error)

contains

  subroutine check(what, right)
    character(*), intent(in) :: what
    logical, intent(in) :: right
    if (error /= MPI_SUCCESS .or. .not. right) print *, 'rank ', rank, ': ', what, ' is wrong'
    if (error == MPI_SUCCESS .and. right) then
      passed = passed + 1
    else
      failed = failed + 1
    end if
  end subroutine check

  subroutine reductions()
    real(8) :: x(1000), y(1000)
    real :: f, g
    integer :: n(3), m(3), counts(ranks), blocks(3 * ranks), mine(3)
    integer(8) :: wide
    x = [(rank + i, i = 1, 1000)]
    call MPI_Allreduce(x, y, 1000, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, error)
    call check('MPI_Allreduce', all(y == [(total + i * ranks, i = 1, 1000)]))
    call MPI_Allreduce(MPI_IN_PLACE, x, 1000, MPI_REAL8, MPI_MAX, MPI_COMM_WORLD, error)
    call check('MPI_Allreduce in place', all(x == [(ranks - 1 + i, i = 1, 1000)]))
    wide = 2_8**40
    call MPI_Allreduce(MPI_IN_PLACE, wide, 1, MPI_INTEGER8, MPI_SUM, MPI_COMM_WORLD, error)
    call check('MPI_Allreduce of wide integers', wide == ranks * 2_8**40)
    n = rank
    m = -1
    call MPI_Reduce(n, m, 3, MPI_INTEGER, MPI_SUM, ranks - 1, MPI_COMM_WORLD, error)
    call check('MPI_Reduce', all(m == merge(total, -1, rank == ranks - 1)))
    if (rank == 0) then
      call MPI_Reduce(MPI_IN_PLACE, n, 3, MPI_INTEGER, MPI_SUM, 0, MPI_COMM_WORLD, error)
    else
      call MPI_Reduce(n, m, 3, MPI_INTEGER, MPI_SUM, 0, MPI_COMM_WORLD, error)
    end if
    call check('MPI_Reduce in place', all(n == merge(total, rank, rank == 0)))
    f = 1
    g = -1
    call MPI_Scan(f, g, 1, MPI_REAL, MPI_SUM, MPI_COMM_WORLD, error)
    call check('MPI_Scan', g == rank + 1)
    call MPI_Exscan(f, g, 1, MPI_REAL, MPI_SUM, MPI_COMM_WORLD, error)
    call check('MPI_Exscan', rank == 0 .or. g == rank)
    blocks = [(i + rank, i = 0, 3 * ranks - 1)]
    call MPI_Reduce_scatter_block(blocks, mine, 3, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, error)
    call check('MPI_Reduce_scatter_block', all(mine == [(total + (3 * rank + i) * ranks, i = 0, 2)]))
    counts = [(mod(i, 3), i = 0, ranks - 1)]
    before = sum(counts(1:rank))
    call MPI_Reduce_scatter(blocks, mine, counts, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, error)
    call check('MPI_Reduce_scatter', all(mine(1:counts(rank + 1)) == [(total + (before + i) * ranks, i = 0, &
        counts(rank + 1) - 1)]))
  end subroutine reductions

  subroutine moves()
    integer :: mine(2), everyones(2 * ranks), counts(ranks), places(ranks), gathered(4 * ranks), to(ranks), from(ranks)
#ifdef FORTRAN_2008
    type(MPI_Datatype) :: types(ranks)
#else
    integer :: types(ranks)
#endif
    mine = [rank, -rank]
    everyones = -1
    call MPI_Allgather(mine, 2, MPI_INTEGER, everyones, 2, MPI_INTEGER, MPI_COMM_WORLD, error)
    call check('MPI_Allgather', all(everyones(1::2) == [(i, i = 0, ranks - 1)]) .and. &
        all(everyones(2::2) == [(-i, i = 0, ranks - 1)]))
    everyones = -1
    everyones(2 * rank + 1:2 * rank + 2) = mine
    call MPI_Allgather(MPI_IN_PLACE, 0, MPI_INTEGER, everyones, 2, MPI_INTEGER, MPI_COMM_WORLD, error)
    call check('MPI_Allgather in place', all(everyones(1::2) == [(i, i = 0, ranks - 1)]))
    counts = [(mod(i, 2) + 1, i = 0, ranks - 1)]
    places = [(4 * i, i = 0, ranks - 1)]
    gathered = -1
    call MPI_Allgatherv(mine, counts(rank + 1), MPI_INTEGER, gathered, counts, places, MPI_INTEGER, MPI_COMM_WORLD, error)
    call check('MPI_Allgatherv', all(gathered(1::4) == [(i, i = 0, ranks - 1)]) .and. all(gathered(3::4) == -1))
    to = [(100 * rank + i, i = 0, ranks - 1)]
    call MPI_Alltoall(to, 1, MPI_INTEGER, from, 1, MPI_INTEGER, MPI_COMM_WORLD, error)
    call check('MPI_Alltoall', all(from == [(100 * i + rank, i = 0, ranks - 1)]))
    call MPI_Alltoall(MPI_IN_PLACE, 0, MPI_INTEGER, from, 1, MPI_INTEGER, MPI_COMM_WORLD, error)
    call check('MPI_Alltoall in place', all(from == to))
    from = -1
    call MPI_Gather(rank, 1, MPI_INTEGER, from, 1, MPI_INTEGER, ranks - 1, MPI_COMM_WORLD, error)
    call check('MPI_Gather', rank /= ranks - 1 .or. all(from == [(i, i = 0, ranks - 1)]))
    mine = -1
    if (rank == 0) then
      call MPI_Scatter(to, 1, MPI_INTEGER, MPI_IN_PLACE, 1, MPI_INTEGER, 0, MPI_COMM_WORLD, error)
      mine(1) = 0
    else
      call MPI_Scatter(to, 1, MPI_INTEGER, mine, 1, MPI_INTEGER, 0, MPI_COMM_WORLD, error)
    end if
    call check('MPI_Scatter', mine(1) == rank)
    ! Rank r sends mod(r + p, 2) elements to rank p.
    counts = [(mod(rank + i, 2), i = 0, ranks - 1)]
    places = [(i, i = 0, ranks - 1)]
    from = -1
    call MPI_Alltoallv(to, counts, places, MPI_INTEGER, from, counts, places, MPI_INTEGER, MPI_COMM_WORLD, error)
    call check('MPI_Alltoallv', all(from == [(merge(100 * i + rank, -1, mod(rank + i, 2) == 1), i = 0, ranks - 1)]))
    from = to
    call MPI_Alltoallv(MPI_IN_PLACE, counts, places, MPI_INTEGER, from, counts, places, MPI_INTEGER, MPI_COMM_WORLD, error)
    call check('MPI_Alltoallv in place', all(from == [(merge(100 * i + rank, to(i + 1), mod(rank + i, 2) == 1), &
        i = 0, ranks - 1)]))
    types = MPI_INTEGER
    from = -1
    call MPI_Alltoallw(to, counts, 4 * places, types, from, counts, 4 * places, types, MPI_COMM_WORLD, error)
    call check('MPI_Alltoallw', all(from == [(merge(100 * i + rank, -1, mod(rank + i, 2) == 1), i = 0, ranks - 1)]))
    from = to
    call MPI_Alltoallw(MPI_IN_PLACE, counts, places, types, from, counts, 4 * places, types, MPI_COMM_WORLD, error)
    call check('MPI_Alltoallw in place', all(from == [(merge(100 * i + rank, to(i + 1), mod(rank + i, 2) == 1), &
        i = 0, ranks - 1)]))
    counts = [(mod(i, 2), i = 0, ranks - 1)]
    from = -1
    call MPI_Gatherv(rank, mod(rank, 2), MPI_INTEGER, from, counts, places, MPI_INTEGER, 0, MPI_COMM_WORLD, error)
    call check('MPI_Gatherv', rank /= 0 .or. all(from == [(merge(i, -1, mod(i, 2) == 1), i = 0, ranks - 1)]))
    mine = -1
    if (rank == 0) then
      call MPI_Scatterv(to, counts, places, MPI_INTEGER, MPI_IN_PLACE, 0, MPI_INTEGER, 0, MPI_COMM_WORLD, error)
    else
      call MPI_Scatterv(to, counts, places, MPI_INTEGER, mine, mod(rank, 2), MPI_INTEGER, 0, MPI_COMM_WORLD, error)
    end if
    call check('MPI_Scatterv', mine(1) == merge(rank, -1, mod(rank, 2) == 1) .and. mine(2) == -1)
    mine = merge(4711, 0, rank == ranks - 1)
    call MPI_Bcast(mine, 2, MPI_INTEGER, ranks - 1, MPI_COMM_WORLD, error)
    call check('MPI_Bcast', all(mine == 4711))
  end subroutine moves

  ! All calls are in flight at once, and are waited and tested for alone and in arrays.
  subroutine started()
    integer, asynchronous :: x(3), sums(3), most(3), sum_at(3), up_to(3), before_me(3), word, mine(2)
    integer, asynchronous :: everyones(2 * ranks), blocks(ranks), block, ones(ranks), one, gathered(2 * ranks)
    integer, asynchronous :: to(ranks), from(ranks), at_root(ranks), scattered
    integer :: counts(ranks), places(ranks), i
    logical :: flag
#ifdef FORTRAN_2008
    type(MPI_Request) :: requests(14)
    type(MPI_Status) :: status
#else
    integer :: requests(14), status(MPI_STATUS_SIZE)
#endif
    x = rank
    most = rank
    sum_at = -1
    word = merge(4711, 0, rank == ranks - 1)
    mine = [rank, -rank]
    blocks = [(i + rank, i = 0, ranks - 1)]
    ones = blocks
    counts = 1
    places = [(2 * i, i = 0, ranks - 1)]
    gathered = -1
    to = [(100 * rank + i, i = 0, ranks - 1)]
    from = to
    at_root = -1
    call MPI_Iallreduce(x, sums, 3, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, requests(1), error)
    call MPI_Iallreduce(MPI_IN_PLACE, most, 3, MPI_INTEGER, MPI_MAX, MPI_COMM_WORLD, requests(2), error)
    call MPI_Ireduce(x, sum_at, 3, MPI_INTEGER, MPI_SUM, 0, MPI_COMM_WORLD, requests(3), error)
    call MPI_Iscan(x, up_to, 3, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, requests(4), error)
    call MPI_Iexscan(x, before_me, 3, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, requests(5), error)
    call MPI_Ireduce_scatter(blocks, block, counts, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, requests(6), error)
    call MPI_Ireduce_scatter_block(ones, one, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, requests(7), error)
    call MPI_Ibcast(word, 1, MPI_INTEGER, ranks - 1, MPI_COMM_WORLD, requests(8), error)
    call MPI_Iallgather(mine, 2, MPI_INTEGER, everyones, 2, MPI_INTEGER, MPI_COMM_WORLD, requests(9), error)
    call MPI_Iallgatherv(mine, 1, MPI_INTEGER, gathered, counts, places, MPI_INTEGER, MPI_COMM_WORLD, requests(10), error)
    call MPI_Ialltoall(MPI_IN_PLACE, 0, MPI_INTEGER, from, 1, MPI_INTEGER, MPI_COMM_WORLD, requests(11), error)
    call MPI_Igather(mine, 1, MPI_INTEGER, at_root, 1, MPI_INTEGER, ranks - 1, MPI_COMM_WORLD, requests(12), error)
    call MPI_Iscatter(to, 1, MPI_INTEGER, scattered, 1, MPI_INTEGER, 0, MPI_COMM_WORLD, requests(13), error)
    call MPI_Ibarrier(MPI_COMM_WORLD, requests(14), error)
    flag = .false.
    do while (.not. flag) ! with a status, because without one Open MPI always returns false
      call MPI_Request_get_status(requests(14), flag, status, error)
    end do
    call MPI_Wait(requests(14), MPI_STATUS_IGNORE, error)
    call check('MPI_Ibarrier', requests(14) == MPI_REQUEST_NULL)
    flag = .false.
    do while (.not. flag)
      call MPI_Test(requests(1), flag, MPI_STATUS_IGNORE, error)
    end do
    call check('MPI_Iallreduce', all(sums == total))
    call MPI_Waitall(14, requests, MPI_STATUSES_IGNORE, error)
    call check('MPI_Iallreduce in place', all(most == ranks - 1))
    call check('MPI_Ireduce', all(sum_at == merge(total, -1, rank == 0)))
    call check('MPI_Iscan', all(up_to == rank * (rank + 1) / 2))
    call check('MPI_Iexscan', rank == 0 .or. all(before_me == rank * (rank - 1) / 2))
    call check('MPI_Ireduce_scatter', block == total + rank * ranks)
    call check('MPI_Ireduce_scatter_block', one == total + rank * ranks)
    call check('MPI_Ibcast', word == 4711)
    call check('MPI_Iallgather', all(everyones(2::2) == [(-i, i = 0, ranks - 1)]))
    call check('MPI_Iallgatherv', all(gathered(1::2) == [(i, i = 0, ranks - 1)]) .and. all(gathered(2::2) == -1))
    call check('MPI_Ialltoall in place', all(from == [(100 * i + rank, i = 0, ranks - 1)]))
    call check('MPI_Igather', all(at_root == merge([(i, i = 0, ranks - 1)], -1, rank == ranks - 1)))
    call check('MPI_Iscatter', scattered == rank)
  end subroutine started

end program fortran_program
