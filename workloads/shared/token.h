/* A token that two processes pass there and back through descriptors. */
#ifndef TOKEN_H
#define TOKEN_H

#include <stdint.h>

/* What a process reads the token from, and what it writes it to. */
struct ends {
	int in, out;
};

/* Starts the partner that answers. The token has current->size bytes, at most 8; both know the next one. */
void start_token(struct ends driver, struct ends partner);

void run_token(uint64_t n);
void check_token(uint64_t n);

#endif
