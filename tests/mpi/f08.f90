! SPDX-License-Identifier: BSD-2-Clause
! MPI's all-to-all from Fortran through module mpi_f08.
program f08
  use mpi_f08
  implicit none
  integer, parameter :: n = 2500
  integer, allocatable :: a(:), b(:), counts(:), displs(:)
  integer :: rank, ranks, i, form
  integer :: index, indices(1)
  logical :: flag
  type(MPI_Request) :: request, requests(1)
  type(MPI_Status) :: status

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  allocate (a(0:n * ranks - 1), b(0:n * ranks - 1), counts(ranks), displs(ranks))
  counts = n
  displs = [(i * n, i = 0, ranks - 1)]
  do form = 1, 10
    a = [(rank * 1000000 + i + form, i = 0, n * ranks - 1)]
    b = -1
    select case (form)
    case (1)
      call MPI_Alltoall(a, n, MPI_INTEGER, b, n, MPI_INTEGER, MPI_COMM_WORLD)
    case (2)
      call MPI_Alltoallv(a, counts, displs, MPI_INTEGER, b, counts, displs, MPI_INTEGER, MPI_COMM_WORLD)
    case (3)
      b = a
      call MPI_Alltoall(MPI_IN_PLACE, 0, MPI_INTEGER, b, n, MPI_INTEGER, MPI_COMM_WORLD)
    case (4)
      call MPI_Ialltoallv(a, counts, displs, MPI_INTEGER, b, counts, displs, MPI_INTEGER, MPI_COMM_WORLD, request)
      call MPI_Wait(request, status)
    case (5)
      call MPI_Ialltoall(a, n, MPI_INTEGER, b, n, MPI_INTEGER, MPI_COMM_WORLD, request)
      call MPI_Wait(request, MPI_STATUS_IGNORE)
    case (6:10)
      call MPI_Ialltoall(a, n, MPI_INTEGER, b, n, MPI_INTEGER, MPI_COMM_WORLD, requests(1))
      flag = .false.
      do while (.not. flag)
        select case (form)
        case (6)
          call MPI_Test(requests(1), flag, status)
        case (7)
          call MPI_Testall(1, requests, flag, MPI_STATUSES_IGNORE)
        case (8)
          call MPI_Testany(1, requests, index, flag, status)
        case (9)
          call MPI_Testsome(1, requests, index, indices, MPI_STATUSES_IGNORE)
          flag = index == 1
        case (10)
          call MPI_Request_get_status(requests(1), flag, status)
        end select
      end do
      call MPI_Wait(requests(1), MPI_STATUS_IGNORE)
    end select
    do i = 0, n * ranks - 1
      if (b(i) /= i / n * 1000000 + rank * n + mod(i, n) + form) then
        print *, rank, ': failed: form ', form, ' element ', i, b(i)
        call MPI_Abort(MPI_COMM_WORLD, 1)
      end if
    end do
  end do
  call MPI_Barrier(MPI_COMM_WORLD)
  if (rank == 0) print '(a, i0, a)', 'f08: all passed on ', ranks, ' ranks'
  call MPI_Finalize()
end program
