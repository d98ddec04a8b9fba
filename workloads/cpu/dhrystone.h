/* Dhrystone 2.1, written anew from its definition:
 *   R. P. Weicker, "Dhrystone Benchmark: Rationale for Version 2 and Measurement Rules",
 *   ACM SIGPLAN Notices 23(8), 1988.
 * Its rules say that procedures are compiled separately and not merged, hence SEPARATE. The values that
 * every variable must have at the end are the definition's too, and check() compares them.
 *
 * Included by the file that says what REG is: `register`, or nothing. */
#include "workload.h"

#include <string.h>

enum ident { IDENT_1, IDENT_2, IDENT_3, IDENT_4, IDENT_5 };

struct record {
	struct record *next;
	enum ident discriminant;
	union {
		struct {
			enum ident kind;
			int number;
			char string[31];
		} first;
		struct {
			enum ident kind;
			char string[31];
		} second;
		struct {
			char one, two;
		} third;
	} variant;
};

#define SOME_STRING "DHRYSTONE PROGRAM, SOME STRING"
#define STRING_1 "DHRYSTONE PROGRAM, 1'ST STRING"
#define STRING_2 "DHRYSTONE PROGRAM, 2'ND STRING"
#define STRING_3 "DHRYSTONE PROGRAM, 3'RD STRING"

static struct record record_1, record_2, *record_glob, *next_glob;
static int int_glob, array_1[50], array_2[50][50];
static bool bool_glob;
static char char_1_glob, char_2_glob;

/* The local variables of the main program as the last pass left them. */
static struct {
	int int_1, int_2, int_3;
	enum ident ident;
	char string_1[31], string_2[31];
} last;

SEPARATE static bool func_3(enum ident ident)
{
	enum ident local = ident;
	return local == IDENT_3;
}

SEPARATE static enum ident func_1(char a, char b)
{
	char local_1 = a, local_2 = local_1;

	if (local_2 != b)
		return IDENT_1;
	char_1_glob = local_1;
	return IDENT_2;
}

SEPARATE static bool func_2(const char *a, const char *b)
{
	REG int index = 2;
	char letter = 0;

	while (index <= 2)
		if (func_1(a[index], b[index + 1]) == IDENT_1) {
			letter = 'A';
			index++;
		}
	if (letter >= 'W' && letter < 'Z')
		index = 7;
	if (letter == 'R')
		return true;
	if (strcmp(a, b) > 0) {
		index += 7;
		int_glob = index;
		return true;
	}
	return false;
}

SEPARATE static void proc_7(int a, int b, int *result)
{
	int local = a + 2;
	*result = b + local;
}

SEPARATE static void proc_8(int one[50], int two[50][50], int a, int b)
{
	REG int at = a + 5;

	one[at] = b;
	one[at + 1] = one[at];
	one[at + 30] = at;
	for (REG int i = at; i <= at + 1; i++)
		two[at][i] = at;
	/* Counts the passes, and wraps instead of being undefined in a very long run. */
	two[at][at - 1] = (int)((unsigned)two[at][at - 1] + 1);
	two[at + 20][at] = one[at];
	int_glob = 5;
}

SEPARATE static void proc_6(enum ident in, enum ident *out)
{
	*out = in;
	if (!func_3(in))
		*out = IDENT_4;
	switch (in) {
	case IDENT_1: *out = IDENT_1; break;
	case IDENT_2: *out = int_glob > 100 ? IDENT_1 : IDENT_4; break;
	case IDENT_3: *out = IDENT_2; break;
	case IDENT_4: break;
	case IDENT_5: *out = IDENT_3; break;
	}
}

SEPARATE static void proc_5(void)
{
	char_1_glob = 'A';
	bool_glob = false;
}

SEPARATE static void proc_4(void)
{
	bool local = char_1_glob == 'A';
	bool_glob = local | bool_glob;
	char_2_glob = 'B';
}

SEPARATE static void proc_3(struct record **reference)
{
	if (record_glob)
		*reference = record_glob->next;
	proc_7(10, int_glob, &record_glob->variant.first.number);
}

SEPARATE static void proc_2(int *reference)
{
	int number = *reference + 10;
	enum ident ident = IDENT_2;

	do
		if (char_1_glob == 'A') {
			number--;
			*reference = number - int_glob;
			ident = IDENT_1;
		}
	while (ident != IDENT_1);
}

SEPARATE static void proc_1(REG struct record *record)
{
	REG struct record *next = record->next;

	*record->next = *record_glob;
	record->variant.first.number = 5;
	next->variant.first.number = record->variant.first.number;
	next->next = record->next;
	proc_3(&next->next);
	if (next->discriminant == IDENT_1) {
		next->variant.first.number = 6;
		proc_6(record->variant.first.kind, &next->variant.first.kind);
		next->next = record_glob->next;
		proc_7(next->variant.first.number, 10, &next->variant.first.number);
	} else {
		*record = *record->next;
	}
}

static void prepare(void)
{
	next_glob = &record_1;
	record_glob = &record_2;
	record_glob->next = next_glob;
	record_glob->discriminant = IDENT_1;
	record_glob->variant.first.kind = IDENT_3;
	record_glob->variant.first.number = 40;
	strcpy(record_glob->variant.first.string, SOME_STRING);
	array_2[8][7] = 10;
}

static void run(uint64_t n)
{
	REG int int_1 = 0, int_2 = 0;
	int int_3 = 0;
	enum ident ident = IDENT_1;
	char string_1[31], string_2[31];

	strcpy(string_1, STRING_1);
	for (uint64_t pass = 1; pass <= n; pass++) {
		proc_5();
		proc_4();
		int_1 = 2;
		int_2 = 3;
		strcpy(string_2, STRING_2);
		ident = IDENT_2;
		bool_glob = !func_2(string_1, string_2);
		while (int_1 < int_2) {
			int_3 = 5 * int_1 - int_2;
			proc_7(int_1, int_2, &int_3);
			int_1++;
		}
		proc_8(array_1, array_2, int_1, int_3);
		proc_1(record_glob);
		for (REG char letter = 'A'; letter <= char_2_glob; letter++)
			if (ident == func_1(letter, 'C')) {
				proc_6(IDENT_1, &ident);
				strcpy(string_2, STRING_3);
				int_2 = int_glob = (int)pass;
			}
		int_2 *= int_1;
		int_1 = int_2 / int_3;
		int_2 = 7 * (int_2 - int_3) - int_1;
		int proc_2_argument = int_1; /* a register variable has no address */
		proc_2(&proc_2_argument);
		int_1 = proc_2_argument;
	}
	last.int_1 = int_1, last.int_2 = int_2, last.int_3 = int_3, last.ident = ident;
	strcpy(last.string_1, string_1);
	strcpy(last.string_2, string_2);
}

static void expect(const char *what, long got, long expected)
{
	if (got != expected)
		fail("%s is %ld, not %ld", what, got, expected);
}

static void check(uint64_t n)
{
	expect("Int_Glob", int_glob, 5);
	expect("Bool_Glob", bool_glob, 1);
	expect("Ch_1_Glob", char_1_glob, 'A');
	expect("Ch_2_Glob", char_2_glob, 'B');
	expect("Arr_1_Glob[8]", array_1[8], 7);
	expect("Arr_2_Glob[8][7]", array_2[8][7], (int)(uint32_t)(n + 10));
	expect("Ptr_Glob->Discr", record_glob->discriminant, 0);
	expect("Ptr_Glob->Enum_Comp", record_glob->variant.first.kind, 2);
	expect("Ptr_Glob->Int_Comp", record_glob->variant.first.number, 17);
	expect("Ptr_Glob->Str_Comp", strcmp(record_glob->variant.first.string, SOME_STRING), 0);
	expect("Next_Ptr_Glob->Discr", next_glob->discriminant, 0);
	expect("Next_Ptr_Glob->Enum_Comp", next_glob->variant.first.kind, 1);
	expect("Next_Ptr_Glob->Int_Comp", next_glob->variant.first.number, 18);
	expect("Next_Ptr_Glob->Str_Comp", strcmp(next_glob->variant.first.string, SOME_STRING), 0);
	expect("Int_1_Loc", last.int_1, 5);
	expect("Int_2_Loc", last.int_2, 13);
	expect("Int_3_Loc", last.int_3, 7);
	expect("Enum_Loc", last.ident, 1);
	expect("Str_1_Loc", strcmp(last.string_1, STRING_1), 0);
	expect("Str_2_Loc", strcmp(last.string_2, STRING_2), 0);
}
