/* File Write, File Read and File Copy: -w, -r or -c, the number of buffers, the bytes of a buffer, the KiB
 * of a file. The file is written and read through before it is copied, and the copy has its blocks before
 * the clock runs, as nearly all of the original's 30 seconds do. Nothing is synchronised while it does. */
#include "reference.h"

#include <fcntl.h>
#include <string.h>

static char buffer[8192];
static int size;
static unsigned long buffers;

static int make(const char *name)
{
	int fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0600);

	if (fd < 0)
		die(name);
	unlink(name);
	return fd;
}

/* From one file to the other, each of which may be missing; both are rewound at the end of the file. */
static void transfer(int from, int to, unsigned long count)
{
	for (unsigned long done = 0; count; count--) {
		if (from >= 0 && read(from, buffer, size) != size)
			die("read");
		if (to >= 0 && write(to, buffer, size) != size)
			die("write");
		if (++done == buffers) {
			if (from >= 0)
				lseek(from, 0, SEEK_SET);
			if (to >= 0)
				lseek(to, 0, SEEK_SET);
			done = 0;
		}
	}
}

int main(int argc, char **argv)
{
	if (argc != 5 || strtoul(argv[3], NULL, 10) > sizeof buffer)
		return 2;
	unsigned long count = strtoul(argv[2], NULL, 10);
	size = atoi(argv[3]);
	buffers = strtoul(argv[4], NULL, 10) * 1024 / size;
	for (unsigned i = 0; i < sizeof buffer; i++)
		buffer[i] = i & 0xff;

	int source = make("reference-0"), copy = make("reference-1");
	transfer(-1, source, buffers);
	transfer(source, -1, buffers);
	transfer(source, copy, buffers);
	fsync(source);
	fsync(copy);

	int from = strcmp(argv[1], "-w") ? source : -1;
	int to = strcmp(argv[1], "-w") == 0 ? source : strcmp(argv[1], "-c") == 0 ? copy : -1;
	double start = now_s();
	transfer(from, to, count);
	report((double)count * size / 1024, now_s() - start, "KBps");
}
