! An MPI program in Fortran 2008 without any use of Rankine. It makes persistent collective calls: started alone and in
! arrays together with a message, in a different order on each rank, waited and tested for in every way, with and
! without the error argument. Compile with -DMADE_READY_BY_EXTENSION if the MPI has such calls under other names. The
! program needs the preload library: no MPI's persistent calls get through all of it. It prints "N passed, M failed".
program fortran_2008_program
  use mpi_f08
#ifdef MADE_READY_BY_EXTENSION
  use mpi_f08_ext
#define MPI_Allreduce_init MPIX_Allreduce_init
#define MPI_Bcast_init MPIX_Bcast_init
#define MPI_Barrier_init MPIX_Barrier_init
#define MPI_Allgather_init MPIX_Allgather_init
#endif
  implicit none
  integer, parameter :: calls = 4
  integer, asynchronous :: x(1000), sums(1000), word(2), mine
  integer, asynchronous, allocatable :: everyones(:)
  type(MPI_Request) :: requests(calls + 2)
  type(MPI_Status) :: statuses(calls + 2), status
  integer :: rank, ranks, error, round, i, j, n, ended, passed = 0, failed = 0, indices(calls + 2)
  integer, asynchronous :: sent, received
  logical :: flag

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  allocate (everyones(ranks))
  call MPI_Barrier(MPI_COMM_WORLD)
  call MPI_Barrier(MPI_COMM_WORLD, error)
  call check('MPI_Barrier', error == MPI_SUCCESS)
  call MPI_Allreduce_init(x, sums, 1000, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, requests(1))
  call MPI_Bcast_init(word, 2, MPI_INTEGER, ranks - 1, MPI_COMM_WORLD, MPI_INFO_NULL, requests(2), error)
  call check('MPI_Bcast_init', error == MPI_SUCCESS)
  call MPI_Barrier_init(MPI_COMM_WORLD, MPI_INFO_NULL, requests(3), error)
  call check('MPI_Barrier_init', error == MPI_SUCCESS)
  call MPI_Allgather_init(mine, 1, MPI_INTEGER, everyones, 1, MPI_INTEGER, MPI_COMM_WORLD, MPI_INFO_NULL, requests(4))
  ! With the calls, a message round the ring, made by MPI itself.
  call MPI_Send_init(sent, 1, MPI_INTEGER, mod(rank + 1, ranks), 5, MPI_COMM_WORLD, requests(5))
  call MPI_Recv_init(received, 1, MPI_INTEGER, mod(rank + ranks - 1, ranks), 5, MPI_COMM_WORLD, requests(6))

  do round = 1, 5
    call begin()
    do i = 1, size(requests)
      j = 1 + mod(i + rank + round, size(requests))
      if (mod(i, 2) == 0) call MPI_Start(requests(j), error)
      if (mod(i, 2) == 1) call MPI_Start(requests(j))
    end do
    call MPI_Wait(requests(1 + mod(rank, calls)), status, error)
    do i = 1, size(requests)
      call MPI_Wait(requests(1 + mod(i + rank, size(requests))), MPI_STATUS_IGNORE)
    end do
    call finish('MPI_Wait')

    call begin_all()
    call MPI_Waitall(size(requests), requests, statuses, error)
    call MPI_Get_count(statuses(6), MPI_INTEGER, n)
    call check('a status', error == MPI_SUCCESS .and. n == 1 .and. statuses(6)%MPI_TAG == 5)
    call finish('MPI_Waitall')
    call begin_all()
    call MPI_Waitall(size(requests), requests, MPI_STATUSES_IGNORE)
    call finish('MPI_Waitall without statuses')

    call begin_all()
    n = 0
    do i = 1, size(requests)
      call MPI_Waitany(size(requests), requests, j, status)
      n = ibset(n, j)
    end do
    call check('each index', each_once(n))
    call MPI_Waitany(size(requests), requests, j, MPI_STATUS_IGNORE, error)
    call check('nothing is left', j == MPI_UNDEFINED .and. error == MPI_SUCCESS)
    call finish('MPI_Waitany')

    call begin_all()
    n = 0
    ended = 0
    do while (ended < size(requests))
      call MPI_Waitsome(size(requests), requests, j, indices, statuses)
      do i = 1, j
        n = ibset(n, indices(i))
      end do
      ended = ended + j
    end do
    call check('each index', each_once(n))
    call MPI_Waitsome(size(requests), requests, j, indices, MPI_STATUSES_IGNORE, error)
    call check('nothing is left', j == MPI_UNDEFINED .and. error == MPI_SUCCESS)
    call finish('MPI_Waitsome')

    call begin_all()
    do i = size(requests), 1, -1
      flag = .false.
      do while (.not. flag)
        call MPI_Test(requests(i), flag, MPI_STATUS_IGNORE)
      end do
    end do
    call finish('MPI_Test')

    call begin_all()
    flag = .false.
    do while (.not. flag)
      call MPI_Testall(size(requests), requests, flag, MPI_STATUSES_IGNORE)
    end do
    call finish('MPI_Testall')

    call begin_all()
    ended = 0
    do while (ended < size(requests))
      call MPI_Testany(size(requests), requests, j, flag, status, error)
      if (flag) ended = ended + 1
    end do
    call finish('MPI_Testany')

    call begin_all()
    ended = 0
    do while (ended < size(requests))
      call MPI_Testsome(size(requests), requests, j, indices, statuses)
      ended = ended + j
    end do
    call finish('MPI_Testsome')

    call begin_all()
    do i = 1, size(requests)
      flag = .false.
      do while (.not. flag) ! with a status, because without one Open MPI always returns false
        call MPI_Request_get_status(requests(i), flag, status)
      end do
    end do
    call MPI_Waitall(size(requests), requests, MPI_STATUSES_IGNORE)
    call finish('MPI_Request_get_status')
  end do

  do i = 1, size(requests)
    if (mod(i, 2) == 0) call MPI_Request_free(requests(i), error)
    if (mod(i, 2) == 1) call MPI_Request_free(requests(i))
  end do
  call check('MPI_Request_free', all([(requests(i) == MPI_REQUEST_NULL, i = 1, size(requests))]))
  call MPI_Ibarrier(MPI_COMM_WORLD, requests(1))
  call MPI_Wait(requests(1), MPI_STATUS_IGNORE)
  call MPI_Ibarrier(MPI_COMM_WORLD, requests(1), error)
  call MPI_Wait(requests(1), MPI_STATUS_IGNORE)
  call check('MPI_Ibarrier', error == MPI_SUCCESS .and. requests(1) == MPI_REQUEST_NULL)
  if (rank == 0) print '(i0, a, i0, a)', passed, ' passed, ', failed, ' failed'
  call MPI_Finalize()

contains

  ! MPICH 4.0 counts from 0 here.
  logical function each_once(bits)
    integer, intent(in) :: bits
    each_once = bits == 2 * (2**size(requests) - 1) .or. bits == 2**size(requests) - 1
  end function each_once

  subroutine check(what, right)
    character(*), intent(in) :: what
    logical, intent(in) :: right
    if (.not. right) print *, 'rank ', rank, ': ', what, ' is wrong'
    if (right) passed = passed + 1
    if (.not. right) failed = failed + 1
  end subroutine check

  subroutine begin()
    x = [(rank + i + round, i = 1, 1000)]
    sums = -1
    word = merge(4711 + round, 0, rank == ranks - 1)
    mine = 10 * rank + round
    everyones = -1
    sent = rank + round
    received = -1
  end subroutine begin

  subroutine begin_all()
    call begin()
    if (mod(round, 2) == 0) call MPI_Startall(size(requests), requests, error)
    if (mod(round, 2) == 1) call MPI_Startall(size(requests), requests)
  end subroutine begin_all

  subroutine finish(how)
    character(*), intent(in) :: how
    call check(how, all(sums == [((ranks * (ranks - 1)) / 2 + ranks * (i + round), i = 1, 1000)]) &
        .and. all(word == 4711 + round) .and. all(everyones == [(10 * i + round, i = 0, ranks - 1)]) &
        .and. received == mod(rank + ranks - 1, ranks) + round)
  end subroutine finish

end program fortran_2008_program
