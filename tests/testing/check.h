/* check.h -- shared by every test program: cmocka, array comparison, paths of the shared data. */
#ifndef TESTS_CHECK_H
#define TESTS_CHECK_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "statrec/base.h"

/* |got - want| <= atol + rtol * |want| for every element (NaN equals NaN, inf equals inf of the
 * same sign). On failure prints the name, the number of bad elements, and the worst one: its index,
 * both values and the error in units of the tolerance. Then fails the test. */
void check_near_double(const char *name, const double *got, const double *want, int64_t count,
                       double rtol, double atol);
void check_near_float(const char *name, const float *got, const double *want, int64_t count,
                      double rtol, double atol);
/* The same without failing: true if all agree; prints differences to stderr. */
bool check_close(const char *name, const double *got, const double *want, int64_t count,
                 double rtol, double atol);

/* Comparisons of two numbers. NaN fails each of them, except check_differs. A failure prints file
 * and line, the expression and both numbers. */
#define check_below(got, bound)    CHECK_PAIR(got, CHECK_LESS, "<", bound)
#define check_at_most(got, bound)  CHECK_PAIR(got, CHECK_LESS_OR_EQUAL, "<=", bound)
#define check_above(got, bound)    CHECK_PAIR(got, CHECK_GREATER, ">", bound)
#define check_at_least(got, bound) CHECK_PAIR(got, CHECK_GREATER_OR_EQUAL, ">=", bound)
#define check_equals(got, want)    CHECK_PAIR(got, CHECK_EQUAL, "==", want)
#define check_differs(got, other)  CHECK_PAIR(got, CHECK_UNEQUAL, "!=", other)

/* Comparisons of |got - want| with a bound; NaN fails. A failure prints all three numbers and the
 * difference too. */
#define check_within(got, want, bound) CHECK_GAP(got, want, CHECK_LESS, "<", bound)
#define check_within_inclusive(got, want, bound)                                                   \
    CHECK_GAP(got, want, CHECK_LESS_OR_EQUAL, "<=", bound)
#define check_apart(got, other, bound) CHECK_GAP(got, other, CHECK_GREATER, ">", bound)

typedef enum check_relation {
    CHECK_LESS,
    CHECK_LESS_OR_EQUAL,
    CHECK_GREATER,
    CHECK_GREATER_OR_EQUAL,
    CHECK_EQUAL,
    CHECK_UNEQUAL
} check_relation;

#define CHECK_PAIR(got, relation, sign, bound)                                                     \
    check_numbers(#got " " sign " " #bound, got, relation, bound, __FILE__, __LINE__)
#define CHECK_GAP(got, want, relation, sign, bound)                                                \
    check_distance("|" #got " - (" #want ")| " sign " " #bound, got, want, relation, bound,        \
                   __FILE__, __LINE__)

/* For the macros above. */
void check_numbers(const char *text, double got, check_relation relation, double bound,
                   const char *file, int line);
void check_distance(const char *text, double got, double want, check_relation relation,
                    double bound, const char *file, int line);

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

/* $STATREC_TEST selects the tests of a program by name or by a pattern with * and ? (check.c); the
 * default is all.
 *
 * Number of places that a test tries: $STATREC_TORTURE, else `few` (tests/README.md). Prints once
 * that it was called; tests/torture.sh relies on this line. */
long check_places(long few);

#endif
