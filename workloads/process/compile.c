/* UnixBench's "C Compiler Throughput": the system's compiler compiles and links one small program.
 *
 * Own program of the original's size, in C that every compiler takes: the original's, of 1989, is refused
 * since gcc 14. Every executable is looked for, and the last is run. */
#include "workload.h"
#include "program.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BYTES = 3584, LINES = 156 }; /* as UnixBench's cctest.c */

static const char source[] =
	"/* The program that the workload `compile` compiles. */\n"
	"#include <stdio.h>\n"
	"#include <stdlib.h>\n"
	"#include <string.h>\n"
	"\n"
	"#define SIZE 12\n"
	"#define WORDS 64\n"
	"\n"
	"struct node {\n"
	"\tstruct node *left, *right;\n"
	"\tchar word[16];\n"
	"\tint count;\n"
	"};\n"
	"\n"
	"struct matrix {\n"
	"\tlong cell[SIZE][SIZE];\n"
	"};\n"
	"\n"
	"static struct node pool[WORDS];\n"
	"static int used;\n"
	"static unsigned state = 1;\n"
	"\n"
	"static const char *const names[] = {\n"
	"\t\"anvil\", \"beam\", \"crane\", \"drum\", \"engine\", \"flange\", \"gear\",\n"
	"};\n"
	"\n"
	"/* Numerical Recipes' generator. */\n"
	"static unsigned next_random(void)\n"
	"{\n"
	"\tstate = state * 1664525u + 1013904223u;\n"
	"\treturn state >> 16;\n"
	"}\n"
	"\n"
	"static struct node *insert(struct node *tree, const char *word)\n"
	"{\n"
	"\tint order;\n"
	"\n"
	"\tif (!tree) {\n"
	"\t\tif (used == WORDS)\n"
	"\t\t\texit(3);\n"
	"\t\ttree = &pool[used++];\n"
	"\t\tstrncpy(tree->word, word, sizeof tree->word - 1);\n"
	"\t\ttree->count = 1;\n"
	"\t\treturn tree;\n"
	"\t}\n"
	"\torder = strcmp(word, tree->word);\n"
	"\tif (order < 0)\n"
	"\t\ttree->left = insert(tree->left, word);\n"
	"\telse if (order > 0)\n"
	"\t\ttree->right = insert(tree->right, word);\n"
	"\telse\n"
	"\t\ttree->count++;\n"
	"\treturn tree;\n"
	"}\n"
	"\n"
	"static int total(const struct node *tree)\n"
	"{\n"
	"\tif (!tree)\n"
	"\t\treturn 0;\n"
	"\treturn total(tree->left) + tree->count + total(tree->right);\n"
	"}\n"
	"\n"
	"static int depth(const struct node *tree)\n"
	"{\n"
	"\tint left, right;\n"
	"\n"
	"\tif (!tree)\n"
	"\t\treturn 0;\n"
	"\tleft = depth(tree->left);\n"
	"\tright = depth(tree->right);\n"
	"\treturn 1 + (left > right ? left : right);\n"
	"}\n"
	"\n"
	"static void identity(struct matrix *m)\n"
	"{\n"
	"\tint i;\n"
	"\n"
	"\tmemset(m, 0, sizeof *m);\n"
	"\tfor (i = 0; i < SIZE; i++)\n"
	"\t\tm->cell[i][i] = 1;\n"
	"}\n"
	"\n"
	"static void multiply(struct matrix *result, const struct matrix *a,\n"
	"\t\t     const struct matrix *b)\n"
	"{\n"
	"\tstruct matrix product;\n"
	"\tint i, j, k;\n"
	"\n"
	"\tfor (i = 0; i < SIZE; i++)\n"
	"\t\tfor (j = 0; j < SIZE; j++) {\n"
	"\t\t\tlong sum = 0;\n"
	"\t\t\tfor (k = 0; k < SIZE; k++)\n"
	"\t\t\t\tsum += a->cell[i][k] * b->cell[k][j];\n"
	"\t\t\tproduct.cell[i][j] = sum % 10007;\n"
	"\t\t}\n"
	"\t*result = product;\n"
	"}\n"
	"\n"
	"static long trace(const struct matrix *m)\n"
	"{\n"
	"\tlong sum = 0;\n"
	"\tint i;\n"
	"\n"
	"\tfor (i = 0; i < SIZE; i++)\n"
	"\t\tsum += m->cell[i][i];\n"
	"\treturn sum;\n"
	"}\n"
	"\n"
	"static int is_prime(int number)\n"
	"{\n"
	"\tint divisor;\n"
	"\n"
	"\tfor (divisor = 2; divisor * divisor <= number; divisor++)\n"
	"\t\tif (number % divisor == 0)\n"
	"\t\t\treturn 0;\n"
	"\treturn number > 1;\n"
	"}\n"
	"\n"
	"static char *reverse(char *text)\n"
	"{\n"
	"\tchar *from = text, *to = text + strlen(text);\n"
	"\n"
	"\twhile (from < --to) {\n"
	"\t\tchar kept = *from;\n"
	"\t\t*from++ = *to;\n"
	"\t\t*to = kept;\n"
	"\t}\n"
	"\treturn text;\n"
	"}\n"
	"\n"
	"int main(void)\n"
	"{\n"
	"\tstruct node *tree = NULL;\n"
	"\tstruct matrix power, step;\n"
	"\tchar text[] = \"nevele\";\n"
	"\tint i, primes = 0;\n"
	"\n"
	"\tfor (i = 0; i < 500; i++)\n"
	"\t\ttree = insert(tree, names[next_random() % 7]);\n"
	"\tidentity(&power);\n"
	"\tidentity(&step);\n"
	"\tfor (i = 1; i < SIZE; i++)\n"
	"\t\tstep.cell[i - 1][i] = 1;\n"
	"\tfor (i = 0; i < 20; i++)\n"
	"\t\tmultiply(&power, &power, &step);\n"
	"\tfor (i = 0; i < 1000; i++)\n"
	"\t\tprimes += is_prime(i);\n"
	"\tif (depth(tree) > 7 || strcmp(reverse(text), \"eleven\"))\n"
	"\t\treturn 2;\n"
	"\tprintf(\"%d words, %d different, trace %ld, %d primes, %s\\n\",\n"
	"\t       total(tree), used, trace(&power), primes, text);\n"
	"\treturn 0;\n"
	"}\n";
static const char printed[] = "500 words, 7 different, trace 12, 168 primes, eleven\n";

static const char *compiler;

/* A comment of three lines makes up what the program is shorter. */
static void write_source(int fd)
{
	char text[BYTES];
	long length = strlen(source);

	memset(text, '-', sizeof text);
	memcpy(text, source, length);
	memcpy(text + length, "/*\n", 3);
	memcpy(text + BYTES - 4, "\n*/\n", 4);
	if (write(fd, text, BYTES) != BYTES || close(fd) < 0)
		fail("cannot write the program to compile");
}

static void prepare(void)
{
	compiler = find_program("cc", "gcc");
	enter_scratch_directory();
	setenv("TMPDIR", ".", 1); /* a compiler that is killed leaves its files there */
	write_source(create_file("cctest.c", 0));
}

static void compile(void)
{
	char *arguments[] = {"cc", "cctest.c", NULL};

	run_program(compiler, arguments, "/dev/null", "");
}

static void run(uint64_t n)
{
	for (; n; n--) {
		compile();
		if (unlink("a.out") < 0)
			fail("the compiler made no a.out");
	}
}

static void check(uint64_t n)
{
	char *arguments[] = {"a.out", NULL};

	(void)n;
	compile();
	run_program("./a.out", arguments, "/dev/null", printed);
}

WORKLOAD(compile, .name = "compile", .summary = "compile and link a C program of 156 lines with the system's cc",
	 .unit = "lpm", .units_per_op = 60, .syscalls_per_op = 3620,
	 .syscalls_note = "approximate: with gcc 12.2, binutils 2.40 and glibc 2.36",
	 .source = "UnixBench 6.0 C (C Compiler Throughput)", .prepare = prepare, .run = run, .check = check);
