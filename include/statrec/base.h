/* base.h -- how every part of statrec reports failure.
 *
 * A function that can fail returns an sr_status and, when the caller passes an sr_failure, leaves
 * one line of text there: what was wrong, the offending value, and where (file:line, dataset,
 * byte). Libraries never print and never exit.
 *
 * Structs that the two sides of the library share begin with their size, so that they can grow: a
 * program and a library of different versions understand what both know. The caller fills in the
 * size of what it passes and of what it lets the library fill in (SR_INIT does); in structs that the
 * library returns pointers to it is the library's. What a longer struct says beyond the library's own
 * must be zero. sr_failure alone has none: a status and two lines are all that it will ever be.
 */
#ifndef STATREC_BASE_H
#define STATREC_BASE_H

#ifdef __cplusplus
extern "C" {
#endif

/* Changes whenever a program built before would misunderstand the library: a binding compares the two.
 * What is only added does not change it. */
#define SR_ABI_VERSION 1
int sr_abi_version(void);     /* that of the library in use */
const char *sr_version(void); /* "0.2.0" */

/* SR_INIT(sr_site, .name = "norm1", .width = 64): such a struct with its size filled in. */
#define SR_INIT(type, ...) ((type){.size = sizeof(type), __VA_ARGS__})

typedef enum sr_status {
    SR_OK = 0,
    SR_USAGE,   /* the caller asked for something impossible */
    SR_MEMORY,  /* an allocation failed */
    SR_IO,      /* the system refused: open, read, write, rename; text holds strerror */
    SR_FORMAT,  /* a file is not what it claims to be */
    SR_EXISTS,  /* would overwrite */
    SR_STATE,   /* call out of order */
    SR_LIBRARY, /* HDF5, LAPACK or another library failed */
} sr_status;

enum { SR_FAILURE_TEXT = 768 };

/* One failure. Zero-initialise it; the first failure stays, later ones are dropped. */
typedef struct sr_failure {
    sr_status status;
    char text[SR_FAILURE_TEXT];
    char hint[256]; /* what the user can do, or "" */
} sr_failure;

/* Keeps (status, formatted text) in *why unless why is NULL or holds a failure already.
 * Returns status, so that `return sr_fail(why, SR_IO, ...)` works. */
sr_status sr_fail(sr_failure *why, sr_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Adds a hint to the failure in *why (kept only when there is one and has none yet). */
void sr_hint(sr_failure *why, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* "usage", "memory" ...: the word for a status. Static storage. */
const char *sr_status_name(sr_status status);

#ifdef __cplusplus
}
#endif
#endif
