/* check.h -- what every test program shares: cmocka, array comparison, where the shared data is. */
#ifndef TESTS_CHECK_H
#define TESTS_CHECK_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "statrec/base.h"

/* |got - want| <= atol + rtol * |want| for every element (NaN equals NaN, inf equals inf of its
 * sign). On failure prints the name, the number of bad elements, and the worst one: its index, both
 * values and the error in units of the tolerance; then fails the test. */
void check_near_double(const char *name, const double *got, const double *want, int64_t count,
                       double rtol, double atol);
void check_near_float(const char *name, const float *got, const double *want, int64_t count,
                      double rtol, double atol);
/* The same without failing: true when all agree; what is wrong goes to stderr. */
bool check_close(const char *name, const double *got, const double *want, int64_t count,
                 double rtol, double atol);

/* Fails with the failure's text unless the status is SR_OK. */
void check_ok(sr_status status, const sr_failure *why);
/* Fails unless *why has this status and its text contains `part`. */
void check_failure(const sr_failure *why, sr_status status, const char *part);

/* $STATREC_SHARED or ../shared joined with `below`, or NULL after printing "skipped: ... not found"
 * (the caller then calls skip()). Static storage, overwritten by the next call. */
const char *check_shared(const char *below);

/* A fresh directory under $TMPDIR or /tmp, removed with everything in it at exit. Static storage.
 */
const char *check_temporary(void);

/* Writes a file with this text. */
void check_write(const char *path, const char *text);

/* How many files this process has open; for differences. */
int check_descriptors(void);

/* Which tests of a program run: all, or those of $STATREC_TEST, a name or a pattern with * and ? (check.c).
 *
 * How many places a test tries: $STATREC_TORTURE, else `few` (tests/README.md). Says once that it was
 * asked, by which tests/torture.sh knows that a row has its places. */
long check_places(long few);

#endif
