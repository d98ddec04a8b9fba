/* The command `load`: its options, and what of the catalogue a user does. */
#include "disk.h"
#include "driver.h"
#include "resident.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* NAME=COUNT */
static struct job job_of(char *text)
{
	char *equals = strchr(text, '=');

	if (!equals)
		usage_error("'%s' is not a test of a load: write NAME=COUNT", text);
	*equals = '\0';
	const struct workload *test = find_workload(text);
	if (!test)
		usage_error("unknown workload '%s'; 'weigh-workloads list' lists all workloads", text);
	struct job job = {.test = test, .count = (long)number(text, equals + 1, 1, 1000000)};
	/* What places its process, or executes its own image, is executed as a program of its own. */
	if (test->placement != ANYWHERE || test->exec_self) {
		char **argv = calloc(6, sizeof *argv);
		if (!argv)
			usage_error("no memory for '%s'", text);
		memcpy(argv, (char *[]){"/proc/self/exe", "run", text, "--operations", "1"}, 5 * sizeof *argv);
		job.argv = argv;
		job.test = &command_job;
	}
	return job;
}

/* A command has at least a word. */
static void add_word(struct job *job, char *word)
{
	int words = 0;

	while (job->argv && job->argv[words])
		words++;
	job->argv = realloc(job->argv, (words + 2) * sizeof *job->argv);
	if (!job->argv)
		usage_error("no memory for the words of a command");
	job->argv[words] = word;
	job->argv[words + 1] = NULL;
}

static void check(const struct load_options *options)
{
	if (options->tests == 0)
		usage_error("load takes tests: NAME=COUNT ...");
	if (options->think_ns && options->jobs_per_1000s)
		usage_error("--think-us and --jobs-per-1000s exclude each other: leave one out");
	for (int i = 0; i < options->tests; i++)
		if (options->jobs[i].test == &command_job && !options->jobs[i].argv)
			usage_error("--command needs at least one --argument");
}

int load_command(int argc, char **argv)
{
	static const struct option known[] = {
		{"users", required_argument, NULL, 'u'},
		{"seed", required_argument, NULL, 's'},
		{"think-us", required_argument, NULL, 't'},
		{"jobs-per-1000s", required_argument, NULL, 'r'},
		{"file-kib", required_argument, NULL, 'k'},
		{"block-kib", required_argument, NULL, 'b'},
		{"period-ms", required_argument, NULL, 'p'},
		{"common-kib", required_argument, NULL, 'm'},
		{"cold", no_argument, NULL, 'c'},
		{"disk-dir", required_argument, NULL, 'd'},
		{"disk-tree", required_argument, NULL, 'e'},
		{"resident-mib", required_argument, NULL, 'i'},
		{"endless", no_argument, NULL, 'n'},
		{"command", required_argument, NULL, 'x'},
		{"argument", required_argument, NULL, 'a'},
		{0},
	};
	struct load_options options = {.users = 1};
	struct job jobs[argc];

	opterr = 0;
	for (int option; (option = getopt_long(argc, argv, ":", known, NULL)) != -1;) {
		switch (option) {
		case 'u': options.users = number("users", optarg, 1, 1000000); break;
		case 's': options.seed = number("seed", optarg, 0, UINT64_MAX); break;
		case 't': options.think_ns = number("think-us", optarg, 0, 3600000000ull) * 1000; break;
		case 'r': options.jobs_per_1000s = number("jobs-per-1000s", optarg, 1, 1ull << 40); break;
		case 'k': disk_kib_option = (long)number("file-kib", optarg, 1, 1ull << 31); break;
		case 'b':
			disk_block_kib_option = (long)number("block-kib", optarg, 1, DISK_MOST_BLOCK_KIB);
			break;
		case 'p': options.period_ns = number("period-ms", optarg, 1, 86400000) * 1000000; break;
		case 'm': disk_common_kib_option = (long)number("common-kib", optarg, 1, 1ull << 40); break;
		case 'c': disk_is_cold = true; break;
		case 'd':
			if (options.disk_place_count == DISK_MOST_DIRECTORIES)
				usage_error("more than %d --disk-dir", DISK_MOST_DIRECTORIES);
			options.disk_places[options.disk_place_count++] = optarg;
			break;
		case 'e': options.disk_tree = optarg; break;
		case 'i': resident_mib_option = (long)number("resident-mib", optarg, 1, 1 << 24); break;
		case 'n': options.is_endless = true; break;
		case 'x':
			jobs[options.tests++] = (struct job){
				.test = &command_job, .count = (long)number("command", optarg, 1, 1000000)};
			break;
		case 'a':
			if (options.tests == 0)
				usage_error("--argument must follow --command");
			add_word(&jobs[options.tests - 1], optarg);
			break;
		case ':': usage_error("%s needs a value", argv[optind - 1]);
		default: usage_error("unknown option '%s'", argv[optind - 1]);
		}
	}
	options.jobs = jobs;
	while (optind < argc)
		jobs[options.tests++] = job_of(argv[optind++]);
	check(&options);
	reset_inherited_state();
	take_load(&options);
	return 0;
}
