/* weigh-workloads: one executable that holds every workload. */
#include "driver.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <getopt.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern const struct workload *const __start_workloads[], *const __stop_workloads[];

const struct workload *current;
int copy_number, copy_count = 1;

#define SCRATCH "weigh-XXXXXX"

static pid_t driver;
static char scratch[sizeof SCRATCH];
static int parent_directory = -1;
/* Beside the first, each in a place of its own. */
static struct further_scratch {
	int parent;
	char name[sizeof SCRATCH];
} *further;
static int further_count;

static _Noreturn void end_with(int status, const char *message)
{
	static bool failing;

	/* In one piece: other processes of the workload may fail as well. */
	fprintf(stderr, "%s: %s\n", current->name, message);
	/* A child may fail as well; what there is to clean up is the driver's. */
	if (getpid() == driver && !failing) {
		failing = true;
		signal(SIGCHLD, SIG_DFL); /* partner.c looks for others that fail: not now */
		if (current->cleanup)
			current->cleanup();
		remove_scratch_directory();
	}
	_exit(status);
}

void fail(const char *format, ...)
{
	char message[2048];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(message, sizeof message, format, arguments);
	va_end(arguments);
	end_with(1, message);
}

void fail_orphaned(const char *message)
{
	end_with(3, message);
}

void own_cleanup(void)
{
	driver = getpid();
}

void enter_scratch_directory(void)
{
	static pid_t owner;

	if (parent_directory >= 0 && owner == getpid())
		return;
	owner = getpid();
	strcpy(scratch, SCRATCH);
	parent_directory = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (parent_directory < 0 || !mkdtemp(scratch))
		fail("cannot make a directory in the current directory: %s", strerror(errno));
	if (chdir(scratch) < 0)
		fail("cannot enter %s: %s", scratch, strerror(errno));
}

void keep_scratch_directory(void)
{
	if (parent_directory >= 0)
		close(parent_directory);
	parent_directory = -1;
	for (int i = 0; i < further_count; i++)
		close(further[i].parent);
	further_count = 0;
}

const char *make_further_scratch_directory(const char *place)
{
	struct further_scratch one = {.name = SCRATCH};
	char *path;

	further = realloc(further, (further_count + 1) * sizeof *further);
	one.parent = open(place, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (!further || one.parent < 0)
		fail("cannot open the directory %s: %s", place, strerror(errno));
	if (asprintf(&path, "%s/%s", place, SCRATCH) < 0 || !mkdtemp(path))
		fail("cannot make a directory in %s: %s", place, strerror(errno));
	memcpy(one.name, path + strlen(path) - strlen(SCRATCH), sizeof SCRATCH);
	further[further_count++] = one;
	return path;
}

static int remove_entry(const char *path, const struct stat *status, int kind, struct FTW *place)
{
	(void)status, (void)kind, (void)place;
	remove(path);
	return 0; /* whatever became of it, the others are to go */
}

static void remove_directory(int parent, const char *name)
{
	if (fchdir(parent) == 0)
		/* A child that was killed may make a file with its last system call. */
		for (int tries = 0; tries < 100 && access(name, F_OK) == 0; tries++) {
			if (tries)
				usleep(1000);
			nftw(name, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
		}
	close(parent);
}

void remove_scratch_directory(void)
{
	for (; further_count > 0; further_count--)
		remove_directory(further[further_count - 1].parent, further[further_count - 1].name);
	if (parent_directory >= 0)
		remove_directory(parent_directory, scratch);
	parent_directory = -1;
}

int create_file(const char *path, long size)
{
	static const char zeros[4096];
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL, 0600);

	if (fd < 0)
		fail("cannot create %s: %s", path, strerror(errno));
	while (size > 0) {
		long part = size < (long)sizeof zeros ? size : (long)sizeof zeros;
		if (write(fd, zeros, part) != part)
			fail("cannot write %s: %s", path, strerror(errno));
		size -= part;
	}
	return fd;
}

void expect_exit(int pid, int expected)
{
	int status;

	if (waitpid(pid, &status, 0) != pid)
		fail("waitpid: %s", strerror(errno));
	if (WIFSIGNALED(status))
		fail("a child was killed by signal %d", WTERMSIG(status));
	if (WEXITSTATUS(status) != expected)
		fail("a child exited with status %d, not %d", WEXITSTATUS(status), expected);
}

const struct workload *find_workload(const char *name)
{
	for (const struct workload *const *w = __start_workloads; w < __stop_workloads; w++)
		if (strcmp((*w)->name, name) == 0)
			return *w;
	return NULL;
}

static int by_name(const void *a, const void *b)
{
	return strcmp((*(const struct workload *const *)a)->name, (*(const struct workload *const *)b)->name);
}

static void print_string(const char *key, const char *value, const char *end)
{
	printf("\"%s\":", key);
	if (!value) {
		printf("null%s", end);
		return;
	}
	putchar('"');
	for (; *value; value++) {
		if (*value == '"' || *value == '\\')
			putchar('\\');
		putchar(*value);
	}
	printf("\"%s", end);
}

static int list(void)
{
	size_t count = __stop_workloads - __start_workloads;
	const struct workload *sorted[count];

	memcpy(sorted, __start_workloads, sizeof sorted);
	qsort(sorted, count, sizeof *sorted, by_name);
	for (size_t i = 0; i < count; i++) {
		putchar('{');
		print_string("name", sorted[i]->name, ",");
		print_string("summary", sorted[i]->summary, ",");
		print_string("unit", sorted[i]->unit, ",");
		printf("\"units_per_op\":%.10g,\"syscalls_per_op\":%.10g,", sorted[i]->units_per_op,
		       sorted[i]->syscalls_per_op);
		print_string("syscalls_note", sorted[i]->syscalls_note, ",");
		print_string("source", sorted[i]->source, ",");
		if (sorted[i]->only_in_batches)
			printf("\"only_in_batches\":true,");
		if (sorted[i]->leaves_work)
			printf("\"leaves_work\":true,");
		if (sorted[i]->parallel)
			printf("\"parallel\":true,");
		if (sorted[i]->series) {
			print_string("series", sorted[i]->series, ",");
			printf("\"x\":%.10g,", sorted[i]->x);
			print_string("x_unit", sorted[i]->x_unit, ",");
		}
		if (sorted[i]->least_ms)
			printf("\"least_ms\":%ld,", sorted[i]->least_ms);
		if (sorted[i]->needs)
			print_string("needs", sorted[i]->needs, ",");
		if (sorted[i]->files)
			print_string("files", sorted[i]->files, ",");
		print_string("group", sorted[i]->group, "}\n");
	}
	return fflush(stdout) == 0 ? 0 : 1;
}

_Noreturn void usage_error(const char *format, ...)
{
	va_list arguments;

	fputs("weigh-workloads: ", stderr);
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fputs("\nTry 'weigh-workloads help'.\n", stderr);
	exit(2);
}

uint64_t number(const char *option, const char *text, uint64_t least, uint64_t most)
{
	char *end;
	errno = 0;
	unsigned long long value = strtoull(text, &end, 10);

	if (*text < '0' || *text > '9' || *end || errno || value < least || value > most)
		usage_error("--%s takes a number from %llu to %llu, not '%s'", option,
			    (unsigned long long)least, (unsigned long long)most, text);
	return value;
}

#ifdef WEIGH_SMALL
/* A fork and an exec cost what there is to copy and to map, and most of this image is other workloads. */
static _Noreturn void execute_small_image(char **argv)
{
	char path[PATH_MAX];
	ssize_t length = readlink("/proc/self/exe", path, sizeof path - sizeof WEIGH_SMALL);

	if (length < 0)
		fail("cannot read /proc/self/exe: %s", strerror(errno));
	strcpy(path + length, WEIGH_SMALL);
	execv(path, argv);
	fail("cannot execute %s, which belongs into this program's directory: %s", path, strerror(errno));
}
#endif

void reset_inherited_state(void)
{
	/* The locale changes what sort and grep cost. Once, as it makes a heap, which forks would copy: not
	 * again in the small image. */
	if (!getenv("LC_ALL") || strcmp(getenv("LC_ALL"), "C"))
		setenv("LC_ALL", "C", 1);
	/* Where it is ignored, wait(2) finds no children. */
	signal(SIGCHLD, SIG_DFL);
}

/* What cannot be had at once. */
static void check_options(const struct options *options)
{
	if (options->copies > 1 && (options->slices || options->count_instructions || options->latencies))
		usage_error("--slices, --count-instructions and --latencies need --copies 1");
	if ((options->per_1000s || options->endures) && (options->operations || options->plants))
		usage_error("--per-1000s and --endure exclude --operations and --planted-ppm");
	if (MAX_SLICES % options->planted_every)
		usage_error("--planted-every must divide %d", MAX_SLICES);
	if (options->turns_file && (options->copies > 1 || options->operations || options->slices ||
				   options->count_instructions || options->latencies))
		usage_error("--turns excludes --copies, --operations, --slices, --count-instructions and "
			    "--latencies");
}

static int run(int argc, char **argv)
{
	static const struct option known[] = {
		{"target-ms", required_argument, NULL, 't'},
		{"warm-up-ms", required_argument, NULL, 'w'},
		{"operations", required_argument, NULL, 'o'},
		{"slices", no_argument, NULL, 's'},
		{"copies", required_argument, NULL, 'n'},
		{"count-instructions", no_argument, NULL, 'c'},
		{"latencies", no_argument, NULL, 'l'},
		{"planted-ppm", required_argument, NULL, 'p'},
		{"planted-every", required_argument, NULL, 'E'},
		{"per-1000s", required_argument, NULL, 'r'},
		{"seed", required_argument, NULL, 'S'},
		{"endure", no_argument, NULL, 'e'},
		{"turns", required_argument, NULL, 'u'},
		{0},
	};
	struct options options = {.target_ns = 100 * 1000000ull, .copies = 1, .planted_every = 1};

	opterr = 0;
	for (int option; (option = getopt_long(argc, argv, ":", known, NULL)) != -1;) {
		switch (option) {
		case 't': options.target_ns = number("target-ms", optarg, 1, 600000) * 1000000; break;
		case 'w': options.warm_up_ns = number("warm-up-ms", optarg, 1, 600000) * 1000000; break;
		case 'o': options.operations = number("operations", optarg, 1, 1ull << 48); break;
		case 's': options.slices = true; break;
		case 'n': options.copies = number("copies", optarg, 1, 1024); break;
		case 'c': options.count_instructions = true; break;
		case 'l': options.latencies = true; break;
		case 'r': options.per_1000s = number("per-1000s", optarg, 1, 1ull << 40); break;
		case 'S': options.seed = number("seed", optarg, 0, UINT64_MAX); break;
		case 'e': options.endures = true; break;
		case 'p':
			options.plants = true, options.planted_ppm = number("planted-ppm", optarg, 0, 500000);
			break;
		case 'E': options.planted_every = number("planted-every", optarg, 1, MAX_SLICES); break;
		case 'u':
			if ((optarg[0] != '0' && optarg[0] != '1') || optarg[1] != ',' || !optarg[2])
				usage_error("--turns takes 0,FILE or 1,FILE, not '%s'", optarg);
			options.turn_side = (uint32_t)(optarg[0] - '0');
			options.turns_file = optarg + 2;
			break;
		case ':': usage_error("%s needs a value", argv[optind - 1]);
		default: usage_error("unknown option '%s'", argv[optind - 1]);
		}
	}
	if (optind != argc - 1)
		usage_error("run takes the name of one workload");
	check_options(&options);
	current = find_workload(argv[optind]);
	if (!current)
		usage_error("unknown workload '%s'; 'weigh-workloads list' lists all workloads", argv[optind]);
	if (options.latencies && current->only_in_batches)
		usage_error("'%s' cannot be timed by single operations: leave out --latencies", argv[optind]);
	reset_inherited_state();
#ifdef WEIGH_SMALL
	if (current->is_in_small)
		execute_small_image(argv - 1);
#endif

	own_cleanup();
	if (options.copies > 1 || options.per_1000s || options.endures)
		take_copies(&options);
	else if (options.turns_file)
		take_turns(&options);
	else
		take_sample(&options);
	return 0;
}

int main(int argc, char **argv)
{
	/* First, because it is part of what exec and execl time. */
	if (argc > 0 && argv[0][0] == '@') {
		current = find_workload(argv[0] + 1);
		return current && current->exec_self ? current->exec_self(argc, argv) : 2;
	}
	if (argc < 2)
		usage_error("a command is missing: list, run or help");
#ifndef WEIGH_IS_SMALL
	if (strcmp(argv[1], "run") == 0 && getenv(CLIENT))
		return delegate(getenv(CLIENT));
#endif
	if (strcmp(argv[1], "run") == 0)
		return run(argc - 1, argv + 1);
#ifndef WEIGH_IS_SMALL
	if (strcmp(argv[1], "beside") == 0)
		return beside(argc - 1, argv + 1);
	if (strcmp(argv[1], "ask") == 0)
		return ask(argc - 1, argv + 1);
	if (strcmp(argv[1], "revive") == 0)
		return revive(argc - 1, argv + 1);
	if (strcmp(argv[1], "load") == 0)
		return load_command(argc - 1, argv + 1);
	if (strcmp(argv[1], "comm") == 0)
		return comm(argc - 1, argv + 1);
	if (strcmp(argv[1], "comm-peer") == 0)
		return comm_peer(argc - 1, argv + 1);
#endif
	if (argc == 2 && strcmp(argv[1], "list") == 0)
		return list();
	if (strcmp(argv[1], "help") == 0 || strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
		fputs(help, stdout);
		return 0;
	}
	usage_error("unknown command '%s'", argv[1]);
}
