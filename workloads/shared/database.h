/* A connection to a database, in its own protocol; statements as text, answers as text. */
#ifndef DATABASE_H
#define DATABASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FIELDS = 4, FIELD_SIZE = 80 };

/* What a statement came to. Everything but these two fails. */
struct answer {
	bool is_duplicate; /* refused, as there is such a key */
	uint64_t affected;
	uint64_t rows;
	char fields[FIELDS][FIELD_SIZE]; /* of the last row */
};

struct protocol {
	const char *kind;
	void (*connect)(const char *variable); /* to the address in this environment variable */
	void (*disconnect)(void); /* optional */
	void (*ask)(const char *statement, struct answer *answer);
	/* A statement that gives one row with 1 where commits are on disk when they are acknowledged, else 0. */
	const char *is_durable;
	/* What selects the column `seq` with all numbers from 0 to this one. */
	const char *sequence;
};

extern const struct protocol mariadb_protocol, postgres_protocol, sqlite_protocol;

/* Of this process: one connection. */
void connect_to_database(void);
void disconnect_from_database(void);
/* In how the database writes it; what stands behind FROM. */
const char *sequence_to(uint64_t last);
struct answer ask_database(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* One row of one field, as a number. */
uint64_t ask_number(const char *statement);

/* Copies a field's text, which must fit. */
void keep_field(struct answer *answer, unsigned number, const void *text, size_t size);

#endif
