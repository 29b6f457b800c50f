! SPDX-License-Identifier: BSD-2-Clause
! What loads.c loads: all-to-all and requests through module mpi_f08.
subroutine loaded() bind(C)
  use mpi_f08
  implicit none
  integer, parameter :: n = 2000
  integer, allocatable :: from(:), to(:), counts(:), displs(:)
  integer :: rank, ranks, i, how, which, got
  type(MPI_Request) :: requests(3)
  logical :: flag

  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  allocate (from(0:n * ranks - 1), to(0:n * ranks - 1), counts(ranks), displs(ranks))
  counts = n
  displs = [(i * n, i = 0, ranks - 1)]
  do how = 1, 4
    from = [(rank * 1000000 + i + how, i = 0, n * ranks - 1)]
    to = -1
    got = -1
    call MPI_Irecv(got, 1, MPI_INTEGER, modulo(rank - 1, ranks), how, MPI_COMM_WORLD, requests(2))
    if (how == 1) then
      call MPI_Alltoallv(from, counts, displs, MPI_INTEGER, to, counts, displs, MPI_INTEGER, MPI_COMM_WORLD)
      requests(1) = MPI_REQUEST_NULL
    else
      call MPI_Ialltoallv(from, counts, displs, MPI_INTEGER, to, counts, displs, MPI_INTEGER, MPI_COMM_WORLD, &
                          requests(1))
    end if
    call MPI_Isend(rank, 1, MPI_INTEGER, modulo(rank + 1, ranks), how, MPI_COMM_WORLD, requests(3))
    select case (how)
    case (1)
      call MPI_Waitall(3, requests, MPI_STATUSES_IGNORE)
    case (2)
      do i = 1, 3
        call MPI_Wait(requests(i), MPI_STATUS_IGNORE)
      end do
    case (3)
      flag = .false.
      do while (.not. flag)
        call MPI_Testall(3, requests, flag, MPI_STATUSES_IGNORE)
      end do
    case (4)
      do i = 1, 3
        call MPI_Waitany(3, requests, which, MPI_STATUS_IGNORE)
      end do
    end select
    if (got /= modulo(rank - 1, ranks) .or. &
        any(to /= [(i / n * 1000000 + rank * n + modulo(i, n) + how, i = 0, n * ranks - 1)])) then
      print *, rank, ': failed: ', how, got, to(0)
      call MPI_Abort(MPI_COMM_WORLD, 1)
    end if
  end do
end subroutine
