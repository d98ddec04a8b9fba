/* On what the sub-tests of disks work, and on how much: the driver of a load sets it, for all users. */
#ifndef DISK_H
#define DISK_H

#include <stdbool.h>
#include <stdint.h>

enum { DISK_MOST_BLOCK_KIB = 1024, DISK_DEFAULT_KIB = 10, DISK_MOST_DIRECTORIES = 255 };

/* KiB of each file, and of the file that jobs read of; 0 is the default, of the latter as much. */
extern long disk_kib_option, disk_common_kib_option;
/* KiB of each block that is read or written at once; 0 is 1. */
extern long disk_block_kib_option;
/* Whether files are taken out of the page cache before they are read, whatever reads them. */
extern bool disk_is_cold;
/* Whether those of this job are. */
bool disk_job_is_cold(void);

/* A tree to search; where NULL, a sub-test makes its own in the scratch directory. */
extern const char *disk_tree;
/* Files of a tree that was given, which are looked at in its place. */
extern char **disk_tree_names;
extern uint32_t disk_tree_name_count;

/* Where jobs make their files, one after the other, and the file in each that they read; none is the current
 * directory, and a file of its own. */
extern const char *disk_directories[DISK_MOST_DIRECTORIES];
extern const char *disk_common_files[DISK_MOST_DIRECTORIES];
extern int disk_directory_count;

/* Bytes that jobs of this process have read and written. */
extern uint64_t disk_bytes;

/* Bytes of a block. */
long disk_block(void);
/* Blocks of each file, and of the file that jobs read: the last one is whole. */
long disk_blocks(void);
long disk_common_blocks(void);
/* Where in the common file a job begins, in blocks: not always the same where the file is larger. */
long disk_common_start(void);

/* Each job of disks begins with this: the next directory. */
void disk_next_directory(void);
/* So many users begin in different ones. */
void disk_begin_with_directory(int number);
/* A name for a file of this process in it; it holds until the next call. */
const char *disk_file(const char *name);
/* The file in it that jobs read. */
const char *disk_common_file(void);

/* Writes the block's number into it, as its first word. */
void number_block(char *block, long number);
/* Fails unless it is there. */
void expect_block(const char *block, long number);

void make_disk_common_file(const char *path);
/* Writes it to the device and takes it out of the page cache. */
void evict_file(int file);

/* 24 directories and 321 files. */
enum { TREE_DIRECTORIES = 24, TREE_FILES = 321 };
void make_disk_tree(const char *path);
/* Gives the names of the files of a tree of the user's, which nothing is written to. */
void read_disk_tree(const char *path);
/* The path of a file of the tree in it, of 64 bytes at the most; -1 for directories. */
void name_in_tree(char name[64], int directory, int file);

#endif
