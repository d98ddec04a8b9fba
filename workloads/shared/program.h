/* A program of the system that a workload starts again and again, and what it prints. */
#ifndef PROGRAM_H
#define PROGRAM_H

/* Finds a program on the PATH; fails, with the way out, where it is not. */
const char *find_program(const char *name, const char *debian_package);

/* Starts a program, reading from the file `input`, waits for it, and fails unless it exited with status 0
 * and printed just this. Seven system calls, of which four are the child's; the program's come on top. */
void run_program(const char *path, char *const argv[], const char *input, const char *expected);

#endif
