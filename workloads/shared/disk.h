/* On what the sub-tests of disks work, and on how much: the driver of a load sets it, for all users. */
#ifndef DISK_H
#define DISK_H

enum { DISK_BLOCK = 1024, DISK_DEFAULT_KIB = 10 };

/* KiB of each file; 0 is the default. */
extern long disk_kib_option;

/* A file of disk_kib() that copies and reads are made of, and a tree to search; where NULL, a sub-test
 * makes its own in the scratch directory. */
extern const char *disk_common_file, *disk_tree;

long disk_kib(void);

/* A name for a file of this process; it holds until the next call. */
const char *disk_file(const char *name);

/* Writes the block's number into it, as its first word. */
void number_block(char *block, long number);
/* Fails unless it is there. */
void expect_block(const char *block, long number);

void make_disk_common_file(const char *path);

/* 24 directories and 321 files. */
enum { TREE_DIRECTORIES = 24, TREE_FILES = 321 };
void make_disk_tree(const char *path);
/* The path of a file of the tree in it, of 64 bytes at the most; -1 for directories. */
void name_in_tree(char name[64], int directory, int file);

#endif
