/* What the machine has to do while a load runs: its CPUs, memory and disk, and who waits for them. The
 * counters of the kernel are read before and after; what has none, how many tasks are runnable and how much
 * memory is left, is looked at ten times a second by the driver, which has nothing else to do. */
#include "driver.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

enum { RESOURCES = 3, SECTOR = 512 };
static const char *const resources[RESOURCES] = {"cpu", "io", "memory"};

struct counters {
	uint64_t at_ns;
	long long waited_us[RESOURCES]; /* some task, of /proc/pressure; -1: the kernel does not say */
	unsigned long long busy, ticks; /* of all CPUs */
	long long disk_ms, disk_sectors;
};

static struct counters before, after;
static unsigned device_major, device_minor;
static double runnable, looks, least_memory = 1;

static FILE *open_text(const char *path)
{
	return fopen(path, "re");
}

static long long pressure(const char *resource)
{
	char path[64];
	long long total = -1;

	snprintf(path, sizeof path, "/proc/pressure/%s", resource);
	FILE *file = open_text(path);
	if (file && fscanf(file, "some avg10=%*f avg60=%*f avg300=%*f total=%lld", &total) != 1)
		total = -1;
	if (file)
		fclose(file);
	return total;
}

static void read_cpus(struct counters *found)
{
	unsigned long long user, nice, system, idle, iowait, irq, softirq, steal;
	FILE *file = open_text("/proc/stat");

	if (file && fscanf(file, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &user, &nice, &system, &idle,
			   &iowait, &irq, &softirq, &steal) == 8) {
		found->busy = user + nice + system + irq + softirq + steal;
		found->ticks = found->busy + idle + iowait;
	}
	if (file)
		fclose(file);
}

/* A device without a number, such as that of a file system in memory, has no line. */
static void read_disk(struct counters *found)
{
	FILE *file = open_text("/proc/diskstats");
	char line[300];

	found->disk_ms = found->disk_sectors = -1;
	while (file && fgets(line, sizeof line, file)) {
		unsigned major, minor;
		long long read, written, busy_ms;

		if (sscanf(line, "%u %u %*s %*d %*d %lld %*d %*d %*d %lld %*d %*d %lld", &major, &minor, &read,
			   &written, &busy_ms) == 5 &&
		    major == device_major && minor == device_minor) {
			found->disk_ms = busy_ms;
			found->disk_sectors = read + written;
			break;
		}
	}
	if (file)
		fclose(file);
}

/* How often the kernel killed a process for its memory; -1: it does not say (Linux 4.13). */
static long long count_killed(void)
{
	FILE *file = open_text("/proc/vmstat");
	char line[100];
	long long killed = -1;

	while (file && fgets(line, sizeof line, file) && sscanf(line, "oom_kill %lld", &killed) != 1)
		;
	if (file)
		fclose(file);
	return killed;
}

static long long killed_before;

void remember_killed(void)
{
	killed_before = count_killed();
}

bool was_out_of_memory(void)
{
	return count_killed() > killed_before;
}

static void count(struct counters *found)
{
	found->at_ns = now_ns();
	for (int i = 0; i < RESOURCES; i++)
		found->waited_us[i] = pressure(resources[i]);
	read_cpus(found);
	read_disk(found);
}

void count_machine(void)
{
	struct stat here;

	if (stat(".", &here) == 0) {
		device_major = major(here.st_dev);
		device_minor = minor(here.st_dev);
	}
	count(&before);
}

void look_at_machine(void)
{
	unsigned long long total = 0, available = 0, running;
	char line[300];
	FILE *file = open_text("/proc/stat");

	while (file && fgets(line, sizeof line, file))
		if (sscanf(line, "procs_running %llu", &running) == 1) {
			runnable += running > 0 ? running - 1 : 0; /* one is this process */
			looks++;
			break;
		}
	if (file)
		fclose(file);
	file = open_text("/proc/meminfo");
	while (file && !available && fgets(line, sizeof line, file)) {
		sscanf(line, "MemTotal: %llu", &total);
		sscanf(line, "MemAvailable: %llu", &available);
	}
	if (file)
		fclose(file);
	if (total && available && (double)available / total < least_memory)
		least_memory = (double)available / total;
}

void count_machine_again(void)
{
	count(&after);
}

void print_machine(void)
{
	static const char *const names[RESOURCES] = {"psi_cpu", "psi_io", "psi_memory"};
	double elapsed_us = (after.at_ns - before.at_ns) / 1e3;

	for (int i = 0; i < RESOURCES; i++)
		if (before.waited_us[i] >= 0 && after.waited_us[i] >= 0)
			print_reading(names[i], 100 * (after.waited_us[i] - before.waited_us[i]) / elapsed_us, "%",
				      "lower");
	if (after.ticks > before.ticks)
		print_reading("cpu_busy", 100.0 * (after.busy - before.busy) / (after.ticks - before.ticks), "%",
			      "lower");
	if (looks > 0) {
		print_reading("run_queue", runnable / looks, "tasks", "lower");
		print_reading("memory_left", 100 * least_memory, "%", "higher");
	}
	if (before.disk_ms >= 0 && after.disk_ms >= 0)
		print_reading("disk_busy", (after.disk_ms - before.disk_ms) * 1e5 / elapsed_us, "%", "lower");
}

void print_disk_bytes(uint64_t moved_bytes, uint64_t operations)
{
	double on_device = (double)(after.disk_sectors - before.disk_sectors) * SECTOR;

	print_reading("file_bytes", (double)moved_bytes / operations, "B/op", "lower");
	if (before.disk_sectors >= 0 && after.disk_sectors >= 0)
		print_reading("device_bytes", on_device / operations, "B/op", "lower");
}
