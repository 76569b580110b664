/* base.h -- failures, and structs that can grow.
 *
 * A function that can fail returns an sr_status. If the caller passes an sr_failure, it stores one
 * line of text there: the problem, the value, and the place (file:line, dataset, byte). The library
 * never prints and never exits.
 *
 * Structs of the interface start with their size, so that they can grow between versions. The
 * caller sets the size of structs that it passes and of structs that the library fills in (SR_INIT
 * does so). In structs that the library returns pointers to, the size is the library's. Fields that
 * the library does not have must be zero. sr_failure has no size and never grows.
 */
#ifndef STATREC_BASE_H
#define STATREC_BASE_H

#ifdef __cplusplus
extern "C" {
#endif

/* Changes when older programs would misunderstand the library; bindings compare it with the
 * library's. Additions do not change it. */
#define SR_ABI_VERSION 1
int sr_abi_version(void);     /* the loaded library's */
const char *sr_version(void); /* "0.2.0" */

/* A struct with its size: SR_INIT(sr_site, .name = "norm1", .width = 64). Other fields are 0, so
 * that sr_options needs SR_OPTIONS_DEFAULT instead. Not for C++, which has no compound literals. */
#define SR_INIT(type, ...) ((type){.size = sizeof(type), __VA_ARGS__})

typedef enum sr_status {
    SR_OK = 0,
    SR_USAGE,   /* an invalid argument */
    SR_MEMORY,  /* an allocation failed */
    SR_IO,      /* open, read, write or rename failed; the text has strerror */
    SR_FORMAT,  /* a file is damaged, or of another format */
    SR_EXISTS,  /* the call would overwrite a file */
    SR_STATE,   /* call out of order */
    SR_LIBRARY, /* HDF5, LAPACK or another library failed */
} sr_status;

enum { SR_FAILURE_TEXT = 768 };

/* One failure. Initialize it to zero. The first failure stays; later ones are dropped. */
typedef struct sr_failure {
    sr_status status;
    char text[SR_FAILURE_TEXT];
    char hint[256]; /* advice, or "" */
} sr_failure;

/* Stores status and text in *why, unless why is NULL or has a failure. Returns status, so that
 * `return sr_fail(why, SR_IO, ...)` works. */
sr_status sr_fail(sr_failure *why, sr_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Adds a hint to the failure in *why, unless it has one. */
void sr_hint(sr_failure *why, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The name of a status: "usage", "memory" ... Static storage. */
const char *sr_status_name(sr_status status);

#ifdef __cplusplus
}
#endif
#endif
