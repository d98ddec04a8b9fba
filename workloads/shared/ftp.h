/* A server of the File Transfer Protocol (RFC 959, and EPSV of RFC 2428) for one purpose: it has a file
 * `payload-N` for every number N, of N bytes that it makes up, and takes what it is given and forgets it.
 * It touches no disk. */
#ifndef FTP_H
#define FTP_H

#include <stdbool.h>
#include <stddef.h>

/* Serves each connection in a process of its own, until it is killed. */
_Noreturn void serve_ftp(int listener);

/* The content of a file of its, from this offset on, which is a multiple of 4. */
void fill_ftp_payload(char *bytes, size_t count, long offset);

#endif
