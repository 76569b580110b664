/* analyze.h -- facts that clang's analyser cannot derive from a single file; `make analyze`
 * includes it before each file. */
#ifndef TESTS_ANALYZE_H
#define TESTS_ANALYZE_H

#include <stddef.h>
#include <stdint.h>

#include "statrec/base.h"

/* A failure is never SR_OK. */
#define sr_fail(why, status, ...) (sr_fail(why, status, __VA_ARGS__), (status))

/* It loses track of the second number of an array that is hashed byte by byte. */
#define BASE_HASH_H
uint64_t hash_bytes(const void *bytes, size_t count);

#endif
