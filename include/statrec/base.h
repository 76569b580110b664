/* base.h -- how every part of statrec reports failure.
 *
 * A function that can fail returns an sr_status and, when the caller passes an sr_failure, leaves
 * one line of text there: what was wrong, the offending value, and where (file:line, dataset,
 * byte). Libraries never print and never exit.
 */
#ifndef STATREC_BASE_H
#define STATREC_BASE_H

#ifdef __cplusplus
extern "C" {
#endif

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
