/* Changes of the address space: mapping, protecting, moving, giving back. No page is touched but where the
 * operation says so: page_fault.c times that. */
#include "operation.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PAGE = 4096, MARK = 0x5a };

static char *area, *page, *moved;
static long heap_end;

static char *map(long size)
{
	return mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static bool map_and_unmap(void)
{
	area = map(current->size);
	return area && area != MAP_FAILED && munmap(area, current->size) == 0;
}

static void check_unmapped(uint64_t n)
{
	unsigned char resident;

	(void)n;
	if (mincore(area, PAGE, &resident) == 0 || errno != ENOMEM)
		fail("what was unmapped is still there");
}

static void prepare(void)
{
	page = map(PAGE);
	if (page == MAP_FAILED)
		fail("mmap: %s", strerror(errno));
	*page = MARK;
}

static void check_mark(uint64_t n)
{
	(void)n;
	if (*page != MARK)
		fail("what was written to the page is gone");
}

/* A store after it is allowed again proves that it is; that it was forbidden, the return value says. */
static bool protect_and_allow(void)
{
	if (mprotect(page, PAGE, PROT_READ) < 0 || mprotect(page, PAGE, PROT_READ | PROT_WRITE) < 0)
		return false;
	*(volatile char *)page = MARK;
	return true;
}

/* The kernel cannot write to a page that may not be written either. */
static void check_protection(uint64_t n)
{
	int zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);

	check_mark(n);
	if (zero < 0 || mprotect(page, PAGE, PROT_READ) < 0)
		fail("open or mprotect: %s", strerror(errno));
	if (read(zero, page, 1) >= 0 || errno != EFAULT)
		fail("a page that may be read only was written");
}

/* MADV_DONTNEED gives the page back: it reads as zero, and the mark is written again. */
static bool give_back(void)
{
	if (madvise(page, PAGE, MADV_DONTNEED) < 0 || *(volatile char *)page != 0)
		return false;
	*(volatile char *)page = MARK;
	return true;
}

static bool grow_and_shrink(void)
{
	moved = mremap(page, PAGE, 2 * PAGE, MREMAP_MAYMOVE);
	if (moved == MAP_FAILED || *moved != MARK)
		return false;
	page = moved; /* where it grew to, there is room the next time as well */
	return mremap(page, 2 * PAGE, PAGE, 0) == page;
}

/* The system call itself: it gives the end that there is now, also when it fails. */
static void find_heap_end(void)
{
	heap_end = syscall(SYS_brk, 0);
}

OPERATION(mmap_4k, "mmap-munmap-4k", 2, map_and_unmap(), .summary = "mmap and munmap of 4 KiB, not touched",
	  .source = "will-it-scale mmap1", .size = PAGE, .check = check_unmapped);
OPERATION(mmap_1m, "mmap-munmap-1m", 2, map_and_unmap(), .summary = "mmap and munmap of 1 MiB, not touched",
	  .source = "will-it-scale mmap1", .size = 1 << 20, .check = check_unmapped);
OPERATION(mprotect, "mprotect", 2, protect_and_allow(),
	  .summary = "mprotect(2) of a page: read only and writable again, then a store", .source = "mprotect(2)",
	  .prepare = prepare, .check = check_protection);
OPERATION(madvise, "madvise-dontneed", 1, give_back(),
	  .summary = "madvise(MADV_DONTNEED) of a page that was written, which then faults in again",
	  .source = "madvise(2)", .prepare = prepare, .check = check_mark);
OPERATION(mremap, "mremap", 2, grow_and_shrink(), .summary = "mremap(2) of a page to two, and back to one",
	  .source = "mremap(2)", .prepare = prepare, .check = check_mark);
OPERATION(brk, "brk", 2,
	  syscall(SYS_brk, heap_end + 16 * PAGE) == heap_end + 16 * PAGE &&
		  syscall(SYS_brk, heap_end) == heap_end,
	  .summary = "brk(2) up by 64 KiB and down again, not touched", .source = "will-it-scale brk1",
	  .prepare = find_heap_end);
