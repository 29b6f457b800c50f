! SPDX-License-Identifier: BSD-2-Clause
! MPI's all-to-all from Fortran, through module mpi: all forms, in place, a strided type, requests and statuses.
module data
  use mpi
  implicit none
  integer :: rank, ranks, ierr
contains
  subroutine check(good, what)
    logical, intent(in) :: good
    character(*), intent(in) :: what
    integer :: e
    if (good) return
    print *, rank, ': failed: ', what
    call mpi_abort(mpi_comm_world, 1, e)
  end subroutine

  integer function value(from, to, i)
    integer, intent(in) :: from, to, i
    value = from * 1000000 + to * 10000 + i
  end function

  ! What a rank has for each other, n elements.
  subroutine fill(buf, n)
    integer, intent(in) :: n
    integer, intent(out) :: buf(n, 0:ranks - 1)
    integer :: i, p
    do p = 0, ranks - 1
      do i = 1, n
        buf(i, p) = value(rank, p, i)
      end do
    end do
  end subroutine

  subroutine verify(buf, n, what)
    integer, intent(in) :: n
    integer, intent(in) :: buf(n, 0:ranks - 1)
    character(*), intent(in) :: what
    integer :: i, p
    do p = 0, ranks - 1
      do i = 1, n
        call check(buf(i, p) == value(p, rank, i), what)
      end do
    end do
  end subroutine
end module

! MPI's functions as C has them: buffers are addresses, which may be null.
module addresses
  use, intrinsic :: iso_c_binding
  implicit none
  interface
    subroutine alltoallv(from, scounts, sdispls, stype, to, rcounts, rdispls, rtype, comm, ierr) &
      bind(C, name='mpi_alltoallv_')
      import
      type(c_ptr), value :: from, to
      integer :: scounts(*), sdispls(*), stype, rcounts(*), rdispls(*), rtype, comm, ierr
    end subroutine
    type(c_ptr) function mmap(addr, length, prot, flags, fd, offset) bind(C)
      import
      type(c_ptr), value :: addr
      integer(c_size_t), value :: length
      integer(c_int), value :: prot, flags, fd
      integer(c_long), value :: offset
    end function
    integer(c_int) function mprotect(addr, length, prot) bind(C)
      import
      integer(c_intptr_t), value :: addr
      integer(c_size_t), value :: length
      integer(c_int), value :: prot
    end function
  end interface
contains
  ! The last rank has nothing to send, or to receive, and no buffer for it.
  subroutine null_buffer(sends)
    use data
    logical, intent(in) :: sends
    integer, target :: from(0:ranks - 1), to(0:ranks - 1)
    integer :: scounts(ranks), rcounts(ranks), displs(ranks), i
    type(c_ptr) :: places(2)
    from = [(value(rank, i, 0), i = 0, ranks - 1)]
    to = -1
    scounts = 1
    rcounts = 1
    displs = [(i, i = 0, ranks - 1)]
    places = [c_loc(from), c_loc(to)]
    if (rank == ranks - 1) places(merge(2, 1, sends)) = c_null_ptr
    if (sends) then
      rcounts = merge(0, 1, rank == ranks - 1)
      scounts(ranks) = 0
    else
      scounts = merge(0, 1, rank == ranks - 1)
      rcounts(ranks) = 0
    end if
    call alltoallv(places(1), scounts, displs, mpi_integer, places(2), rcounts, displs, mpi_integer, &
                   mpi_comm_world, ierr)
    do i = 0, ranks - 1
      call check(to(i) == merge(value(i, rank, 0), -1, rcounts(i + 1) == 1), 'a null buffer')
    end do
  end subroutine

  ! n integers with nothing behind them.
  function at_end(n) result(list)
    use data
    integer, intent(in) :: n
    integer, pointer :: list(:)
    integer(c_size_t), parameter :: room = 65536
    integer(c_intptr_t) :: at
    at = transfer(mmap(c_null_ptr, 2 * room, 3, 34, -1, 0_c_long), at)
    call check(mprotect(at + room, room, 0) == 0, 'mprotect')
    call c_f_pointer(transfer(at + room - 4 * n, c_null_ptr), list, [n])
  end function

  ! Between groups of two sizes: a rank has types for the ranks of the other group.
  subroutine between_groups
    use data
    integer :: half, far, n, i, low
    integer, allocatable :: from(:), to(:), ones(:), displs(:)
    integer, pointer :: types(:)
    low = merge(1, 0, rank == ranks - 1)
    call mpi_comm_split(mpi_comm_world, low, rank, half, ierr)
    call mpi_intercomm_create(half, 0, mpi_comm_world, merge(0, ranks - 1, low == 1), 8, far, ierr)
    call mpi_comm_remote_size(far, n, ierr)
    allocate (from(n), to(n), ones(n), displs(n))
    from = [(rank * 100 + i, i = 1, n)]
    to = -1
    ones = 1
    displs = [(4 * i, i = 0, n - 1)]
    types => at_end(n)
    types = mpi_integer
    call mpi_alltoallw(from, ones, displs, types, to, ones, displs, types, far, ierr)
    if (low == 1) then
      call check(all(to == [(100 * i + 1, i = 0, n - 1)]), 'from the large group')
    else
      call check(all(to == (ranks - 1) * 100 + rank + 1), 'from the small group')
    end if
    call mpi_comm_free(far, ierr)
    call mpi_comm_free(half, ierr)
  end subroutine
end module

program fortran
  use data
  use addresses, only: null_buffer, between_groups
  implicit none
  integer, parameter :: n = 3000
  integer, allocatable :: a(:, :), b(:, :), c(:, :), counts(:), displs(:), bytes(:), types(:)
  integer :: requests(3), statuses(mpi_status_size, 3), status(mpi_status_size), i, index, strided, resized
  integer(mpi_address_kind) :: extent
  logical :: flag

  call mpi_init(ierr)
  call mpi_comm_rank(mpi_comm_world, rank, ierr)
  call mpi_comm_size(mpi_comm_world, ranks, ierr)
  allocate (a(n, 0:ranks - 1), b(n, 0:ranks - 1), c(n, 0:ranks - 1))
  allocate (counts(ranks), displs(ranks), bytes(ranks), types(ranks))
  counts = n
  displs = [(i * n, i = 0, ranks - 1)]
  bytes = displs * 4
  types = mpi_integer

  call fill(a, n)
  b = -1
  call mpi_alltoall(a, n, mpi_integer, b, n, mpi_integer, mpi_comm_world, ierr)
  call check(ierr == mpi_success, 'alltoall')
  call verify(b, n, 'alltoall')
  call mpi_alltoall(mpi_in_place, 0, mpi_datatype_null, a, n, mpi_integer, mpi_comm_world, ierr)
  call verify(a, n, 'alltoall in place')

  call fill(a, n)
  b = -1
  call mpi_alltoallv(a, counts, displs, mpi_integer, b, counts, displs, mpi_integer, mpi_comm_world, ierr)
  call verify(b, n, 'alltoallv')
  call mpi_alltoallv(mpi_in_place, counts, displs, mpi_integer, a, counts, displs, mpi_integer, mpi_comm_world, ierr)
  call verify(a, n, 'alltoallv in place')

  ! every second element of a column goes, and comes as it went
  call fill(a, n)
  b = -1
  call mpi_type_vector(n / 2, 1, 2, mpi_integer, strided, ierr)
  extent = n * 4
  call mpi_type_create_resized(strided, 0_mpi_address_kind, extent, resized, ierr)
  call mpi_type_commit(resized, ierr)
  types = resized
  call mpi_alltoallw(a, [(1, i = 1, ranks)], bytes, types, b, [(1, i = 1, ranks)], bytes, types, mpi_comm_world, ierr)
  call mpi_type_free(strided, ierr)
  do i = 0, ranks - 1
    call check(all(b(1:n:2, i) == [(value(i, rank, index), index = 1, n, 2)]), 'alltoallw')
    call check(all(b(2:n:2, i) == -1), 'alltoallw: what lies between')
  end do

  ! requests, completed by each function
  do i = 1, 4
    call fill(a, n)
    b = -1
    c = -1
    call mpi_irecv(index, 1, mpi_integer, rank, 7, mpi_comm_world, requests(3), ierr)
    call mpi_ialltoall(a, n, mpi_integer, b, n, mpi_integer, mpi_comm_world, requests(1), ierr)
    call mpi_ialltoallv(a, counts, displs, mpi_integer, c, counts, displs, mpi_integer, mpi_comm_world, requests(2), ierr)
    call mpi_send(rank, 1, mpi_integer, rank, 7, mpi_comm_world, ierr)
    select case (i)
    case (1)
      call mpi_waitall(3, requests, statuses, ierr)
      call check(statuses(mpi_tag, 3) == 7 .and. statuses(mpi_source, 3) == rank, 'a status')
    case (2)
      call mpi_wait(requests(2), status, ierr)
      call mpi_wait(requests(1), mpi_status_ignore, ierr)
      call mpi_wait(requests(3), mpi_status_ignore, ierr)
    case (3)
      flag = .false.
      do while (.not. flag)
        call mpi_testall(3, requests, flag, mpi_statuses_ignore, ierr)
      end do
    case (4)
      call mpi_waitany(3, requests, index, status, ierr)
      call check(requests(index) == mpi_request_null, 'waitany')
      call mpi_waitall(3, requests, mpi_statuses_ignore, ierr)
    end select
    call check(all(requests == mpi_request_null), 'requests')
    call verify(b, n, 'ialltoall')
    call verify(c, n, 'ialltoallv')
  end do
  call mpi_type_free(resized, ierr)

  call null_buffer(.false.)
  call null_buffer(.true.)
  call between_groups

  call mpi_barrier(mpi_comm_world, ierr)
  if (rank == 0) print '(a, i0, a)', 'fortran: all passed on ', ranks, ' ranks'
  call mpi_finalize(ierr)
end program
